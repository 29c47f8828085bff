use moraine_codec::{encode, proto::SchemaValue};
use moraine_keys::TableKey;

fn main() {
    let _ = encode(&TableKey { table_id: 0 }, &SchemaValue::default());
}
