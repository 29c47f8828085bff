//! Compiles the protobuf definitions; needs no `protoc`. What the messages are called and made of is kept too, for those
//! who print records.

use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(
        [
            "proto/entity.proto",
            "proto/commit.proto",
            "proto/system.proto",
            "proto/inline.proto",
        ],
        ["proto"],
    )?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("moraine.store.bin"), files.encode_to_vec())?;
    let mut config = prost_build::Config::new();
    config.enable_type_names();
    // Equal records have equal bytes.
    config.btree_map(["."]);
    // Bodies are slices of the stored value, not copies.
    config.bytes(["."]);
    config.compile_fds(files)?;
    Ok(())
}
