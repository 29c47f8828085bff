//! Compiles the protobuf definitions; needs no `protoc`.

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
    let mut config = prost_build::Config::new();
    // Equal records have equal bytes.
    config.btree_map(["."]);
    // Bodies are slices of the stored value, not copies.
    config.bytes(["."]);
    config.compile_fds(files)?;
    Ok(())
}
