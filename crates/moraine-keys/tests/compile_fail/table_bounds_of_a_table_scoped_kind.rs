use moraine_keys::{ColumnKey, History, RowTombstoneKey, TableKey, TableScoped};

fn main() {
    let _ = TableKey::scan_table(7);
    let _ = ColumnKey::scan_table(7);
    let _ = History::<ColumnKey>::scan_table(7);
    let _ = RowTombstoneKey::scan_table(7);
}
