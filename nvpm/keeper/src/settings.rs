// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the settings, which are variables of the container's environment.
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::node::OWN_NAMES;

pub const RELEASE: &str = "/usr/src/nvidia-peer-memory";
pub const CACHE: &str = "/var/lib/nv_peer_mem";
/// The port of the metrics.
const PORT: u16 = 9989;

/// The name of the module, its parameters, the port for metrics (0: no port), and the identity of the release in the
/// image, which each of its modules has as its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub name: String,
    pub parameters: Vec<String>,
    pub port: u16,
    pub version: String,
}

/// Returns the settings of an ENVIRONMENT, or which setting is wrong.
pub fn settings(environment: impl Fn(&str) -> Option<String>, release: &Path) -> Result<Settings, String> {
    let name = environment("NVPM_NAME").filter(|name| !name.is_empty()).unwrap_or_else(|| OWN_NAMES[0].to_owned());
    if !OWN_NAMES.contains(&name.as_str()) {
        return Err(format!("NVPM_NAME={name}: the module is called {}", OWN_NAMES.join(" or ")));
    }
    let parameters = environment("NVPM_PARAMETERS").unwrap_or_default();
    let parameters: Vec<String> = parameters.split_whitespace().map(str::to_owned).collect();
    let switches = switches(release)?;
    let is_known = |parameter: &&String| {
        let (switch, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        switches.iter().any(|known| known == switch) && ["0", "1"].contains(&value)
    };
    if let Some(wrong) = parameters.iter().find(|parameter| !is_known(parameter)) {
        let known = switches.iter().map(|switch| format!("{switch}=0 or 1")).collect::<Vec<_>>().join(" and ");
        return Err(format!("NVPM_PARAMETERS has '{wrong}': the parameters are {known}, separated by blanks"));
    }
    let port = environment("NVPM_METRICS_PORT").unwrap_or_else(|| PORT.to_string());
    let is_number = port.bytes().all(|letter| letter.is_ascii_digit());
    let Some(port) = port.parse().ok().filter(|_| is_number) else {
        return Err(format!("NVPM_METRICS_PORT={port}: this is no port; 0 stands for no metrics"));
    };
    Ok(Settings { name, parameters, port, version: identity(release)? })
}

/// Returns the parameters that the module has, as the release's own source says.
fn switches(release: &Path) -> Result<Vec<String>, String> {
    let source = release.join("src/c/module.c");
    let text = fs::read_to_string(&source);
    let text = text.map_err(|error| format!("the image is broken: {} cannot be read ({error})", source.display()))?;
    let switch = |line: &str| {
        let (name, rest) = line.strip_prefix("module_param_cb(")?.split_once(", ")?;
        rest.starts_with("&nvpm_switch,").then(|| name.to_owned())
    };
    Ok(text.lines().filter_map(switch).collect())
}

/// Returns the identity of the release. Another image of the same version may have other sources.
fn identity(release: &Path) -> Result<String, String> {
    let script = release.join("build/identity");
    let failed = |why: String| Err(format!("the image is broken: {} has failed ({why})", script.display()));
    match Command::new("sh").arg(&script).output() {
        Ok(ended) if ended.status.success() => Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned()),
        Ok(ended) => failed(format!("{}: {}", ended.status, String::from_utf8_lossy(&ended.stderr).trim())),
        Err(error) => failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Directory;
    use std::io::Write;
    use std::path::PathBuf;

    fn top() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn chosen(variables: &[(&str, &str)], release: &Path) -> Result<Settings, String> {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        settings(|name| found(name).map(|(_, value)| (*value).to_owned()), release)
    }

    /// Copies the files of a release that decide about settings.
    fn release() -> Directory {
        let directory = Directory::new();
        let mut copy = Command::new("cp");
        copy.arg("-R").args(["build", "src", "Kbuild", "dkms.conf"].map(|name| top().join(name))).arg(&*directory);
        assert!(copy.status().unwrap().success());
        directory
    }

    fn append(file: &Path, text: &str) {
        fs::OpenOptions::new().append(true).open(file).unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn defaults() {
        let text = fs::read_to_string(top().join("dkms.conf")).unwrap();
        let plain = text.split_once("PACKAGE_VERSION=\"").unwrap().1.split_once('"').unwrap().0;
        let found = chosen(&[], &top()).unwrap();
        let sum = found.version.strip_prefix(plain).unwrap().strip_prefix('+').unwrap();
        assert!(sum.len() == 12 && sum.bytes().all(|letter| letter.is_ascii_hexdigit()));
        let version = found.version.clone();
        let name = "nvidia_peermem".to_owned();
        assert_eq!(found, Settings { name, parameters: Vec::new(), port: 9989, version: version.clone() });
        let variables = [
            ("NVPM_NAME", "nv_peer_mem"),
            ("NVPM_PARAMETERS", " persistent_api_support=0  peerdirect_support=1"),
            ("NVPM_METRICS_PORT", "0"),
        ];
        let parameters = ["persistent_api_support=0", "peerdirect_support=1"].map(str::to_owned).to_vec();
        let expected = Settings { name: "nv_peer_mem".to_owned(), parameters, port: 0, version };
        assert_eq!(chosen(&variables, &top()).unwrap(), expected);
    }

    /// The sources decide what the cache keeps, and whether a loaded module is current.
    #[test]
    fn two_images_of_one_version() {
        let release = release();
        let same = chosen(&[], &release).unwrap().version;
        assert_eq!(same, chosen(&[], &top()).unwrap().version);
        append(&release.join("src/c/module.c"), "int mended;\n");
        assert_ne!(chosen(&[], &release).unwrap().version, same);
    }

    /// The module's source defines the parameters.
    #[test]
    fn a_parameter_of_the_release() {
        let release = release();
        let line = "module_param_cb(longer, &nvpm_switch, &nvpm_longer, 0444);\n";
        append(&release.join("src/c/module.c"), line);
        let variables = [("NVPM_PARAMETERS", "longer=1")];
        assert_eq!(chosen(&variables, &release).unwrap().parameters, ["longer=1"]);
        let said = chosen(&variables, &top()).unwrap_err();
        assert!(said.contains("persistent_api_support=0 or 1, separated"), "{said}");
    }

    #[test]
    fn wrong_settings() {
        for (name, value) in [
            ("NVPM_NAME", "nvidia-peermem"),
            ("NVPM_PARAMETERS", "persistent_api_support=2"),
            ("NVPM_PARAMETERS", "persistent_api_support"),
            ("NVPM_PARAMETERS", "peerdirect_support=1;x"),
            ("NVPM_METRICS_PORT", "65536"),
            ("NVPM_METRICS_PORT", "-1"),
            ("NVPM_METRICS_PORT", "+1"),
            ("NVPM_METRICS_PORT", ""),
            ("NVPM_METRICS_PORT", "http"),
        ] {
            assert!(chosen(&[(name, value)], &top()).unwrap_err().starts_with(name));
        }
    }

    #[test]
    fn a_broken_image() {
        let said = chosen(&[], Path::new("/no/such/release")).unwrap_err();
        assert!(said.starts_with("the image is broken: /no/such/release/src/c/module.c cannot be read ("), "{said}");
        let release = release();
        fs::write(release.join("build/identity"), "echo no >&2; exit 3").unwrap();
        let said = chosen(&[], &release).unwrap_err();
        assert!(said.ends_with("/build/identity has failed (exit status: 3: no)"), "{said}");
    }
}
