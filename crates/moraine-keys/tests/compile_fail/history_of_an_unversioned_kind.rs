use moraine_keys::{History, Kind, TableStatsKey};

fn main() {
    let _ = History { entity: TableStatsKey { table_id: 7 }, end_snapshot: 9 }.encode();
}
