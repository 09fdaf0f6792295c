//! Programs that know nothing of `ranpace kernel exec`: nginx serves, curl fetches and uploads.
#![cfg(all(target_os = "linux", feature = "kernel"))]
#![allow(clippy::unwrap_used)] // a test may

mod emulation;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use emulation::{folder_with, output, program, rights};

/// 20 Mbit/s, 10 ms each way, 400 ms of buffer.
const SCENARIO: &str = r#"
duration = "60s"

[[link]]
name = "down"
from = "server"
to = "phone"
rate = "20Mbit/s"
delay = "10ms"
queue = { kind = "droptail", limit = "1MB" }
back = { rate = "20Mbit/s", queue = { kind = "droptail", limit = "1MB" } }

[[flow]]
from = "server"
to = "phone"
cc = "cubic"
"#;

/// 4 MB each way.
const SIZE: usize = 4_000_000;

/// nginx's configuration for a server in this folder, which also takes files.
fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "daemon off;\nuser root;\nworker_processes 2;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
         events {{}}\n\
         http {{\n  access_log off;\n  client_max_body_size 8m;\n  client_body_temp_path {folder}/body;\n  \
         proxy_temp_path {folder}/proxy;\n  fastcgi_temp_path {folder}/fastcgi;\n  uwsgi_temp_path {folder}/uwsgi;\n  \
         scgi_temp_path {folder}/scgi;\n  \
         server {{ listen 8080; root {folder}/files; location / {{ dav_methods PUT; }} }}\n}}\n"
    )
}

#[test]
fn nginx_and_curl_use_a_control_without_knowing() {
    let Some(_turn) = rights() else { return };
    if program(&["nginx"]).is_none() || program(&["curl"]).is_none() {
        return;
    }
    let folder = folder_with(SCENARIO);
    let path = folder.path();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(path.join("files")).unwrap();
    let content: Vec<u8> = (0..SIZE).map(|place| (place * place / 7) as u8).collect();
    fs::write(path.join("files/film"), &content).unwrap();
    fs::write(path.join("nginx.conf"), configuration(path)).unwrap();
    let ranpace = env!("CARGO_BIN_EXE_ranpace");
    let serve = format!(
        "server={ranpace} kernel exec --cc c2tcp:target=50ms -- nginx -c {}/nginx.conf",
        path.display()
    );
    let fetch =
        "until curl --silent --fail --max-time 50 --output film http://server:8080/film; do sleep 0.2; done";
    let upload = format!(
        "{ranpace} kernel exec --cc newreno+c2tcp:target=50ms -- \
         curl --silent --fail --max-time 50 --upload-file film http://server:8080/upload"
    );
    let script = format!("{fetch} && {upload}");
    let (code, out, error) =
        output(path, &["scenario.toml", "--json", "--also", &serve, "--", "sh", "-c", &script]);
    // 99: the machine was too slow for the figures to count; the programs have run all the same.
    assert!(matches!(code, Some(0 | 99)), "{code:?}: {error}");
    assert!(fs::read(path.join("film")).unwrap() == content, "what curl fetched is not what nginx served");
    assert!(fs::read(path.join("files/upload")).unwrap() == content, "what nginx has is not what curl sent");
    let parsed: serde_json::Value = serde_json::from_str(&out).unwrap();
    let flows = parsed["summary"]["flows"].as_array().unwrap();
    let control_of = |from: &str| {
        let large = flows.iter().filter(|flow| {
            flow["name"].as_str().unwrap().starts_with(from)
                && flow["delivered_bytes"].as_u64().unwrap() >= SIZE as u64
        });
        large
            .map(|flow| flow["cc"].as_str().unwrap().to_owned())
            .next()
            .unwrap_or_else(|| panic!("{flows:?}"))
    };
    assert!(control_of("server:8080").starts_with("kernel c2tcp"), "{flows:?}");
    assert!(control_of("phone:").starts_with("kernel newreno_c2tcp"), "{flows:?}");
}
