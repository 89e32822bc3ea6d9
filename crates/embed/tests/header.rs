//! The header is what the functions say; `UPDATE_EXPECT=1` writes it anew.

use expect_test::expect_file;

#[test]
fn the_header_is_up_to_date() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let config = cbindgen::Config::from_file(format!("{folder}/cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_crate(folder)
        .with_config(config)
        .generate()
        .expect("functions that C can call");
    let mut header = Vec::new();
    bindings.write(&mut header);
    expect_file!["../include/lockstep.h"].assert_eq(&String::from_utf8(header).unwrap());
}
