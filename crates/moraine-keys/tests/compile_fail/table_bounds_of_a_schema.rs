use moraine_keys::{SchemaKey, TableScoped};

fn main() {
    let _ = SchemaKey::scan_table(7);
}
