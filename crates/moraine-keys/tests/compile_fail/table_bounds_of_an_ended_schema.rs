use moraine_keys::{History, SchemaKey, TableScoped};

fn main() {
    let _ = History::<SchemaKey>::scan_table(7);
}
