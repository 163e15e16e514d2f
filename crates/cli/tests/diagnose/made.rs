//! Tables in guides that tests make.

use super::common::root;

/// The table between the marks `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a guide is this one. With
/// `PACELINE_WRITE_TABLE` in the environment it is written there instead.
pub(crate) fn table_in(guide: &str, name: &str, table: &str) {
    let path = root().join(guide);
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (
        format!("<!-- {name}: begin -->\n"),
        format!("<!-- {name}: end -->"),
    );
    let (before, rest) = text.split_once(&begin).unwrap();
    let (told, after) = rest.split_once(&end).unwrap();
    if std::env::var_os("PACELINE_WRITE_TABLE").is_some() {
        std::fs::write(&path, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert_eq!(told, table, "PACELINE_WRITE_TABLE=1 writes it");
    }
}
