// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Decides whether another user could have written a file. nvpm must not load such a file, because monitoring may run
//! nvpm as root. The trusted users are root, the present user, and the owner of this program, because the owner's code
//! is running already.
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use crate::read::reader::reason;

const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Returns why another user could have written a file; None if no other user could. `program` is the path of this
/// program.
pub fn distrusted(path: &Path, program: &Path) -> Option<String> {
    let owner = fs::metadata(program).ok().map(|found| found.uid());
    let trusted: Vec<u32> = [0, geteuid().as_raw()].into_iter().chain(owner).collect();
    untrusted(path, &trusted)
}

/// Returns why a user who is not trusted could have written a file. Neither the file nor a directory of its path may be
/// a link, because the owner of a link chooses the target. A user who may write to one of the directories can replace
/// the file.
fn untrusted(path: &Path, trusted: &[u32]) -> Option<String> {
    for name in path.ancestors() {
        let found = match fs::symlink_metadata(name) {
            Ok(found) => found,
            Err(error) => return Some(format!("{}: {}", name.display(), reason(&error))),
        };
        if let Some(why) = defect(&found, trusted) {
            return Some(format!("{} {why}", name.display()));
        }
    }
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    (!is_file).then(|| format!("{} is no regular file", path.display()))
}

/// Returns what is wrong with a file or a directory. Write rights of the group count like those of others, because the
/// rights of an access list appear as rights of the group. A sticky directory, such as /tmp, may be writable, because
/// only the owners of a file and of the directory can replace the file.
fn defect(found: &Metadata, trusted: &[u32]) -> Option<String> {
    if !trusted.contains(&found.uid()) {
        return Some(format!("belongs to user {}", found.uid()));
    }
    let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
    let is_writable = found.mode() & WRITABLE != 0 && !is_sticky;
    is_writable.then(|| format!("can be written by others (mode 0{:o})", found.mode() & 0o7777))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    const NOBODY: u32 = 65534;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("nvpm-trust-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("inner")).unwrap();
        path
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn nobody_else_can_write_the_file_or_replace_it() {
        let top = directory("modes");
        let (inner, file) = (top.join("inner"), top.join("inner/file"));
        fs::write(&file, "").unwrap();
        let trusted = [0, geteuid().as_raw()];
        for place in [&top, &inner] {
            for (mode, is_safe) in [(0o777, false), (0o775, false), (0o1777, true), (0o755, true)] {
                set(&file, 0o644);
                set(place, mode);
                let expected = format!("{} can be written by others (mode 0{mode:o})", place.display());
                assert_eq!(untrusted(&file, &trusted), (!is_safe).then_some(expected));
            }
        }
        // The sticky bit of a file has no effect.
        set(&file, 0o1646);
        assert_eq!(
            untrusted(&file, &trusted),
            Some(format!("{} can be written by others (mode 01646)", file.display()))
        );
        assert_eq!(untrusted(&inner, &trusted), Some(format!("{} is no regular file", inner.display())));
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn whoever_owns_a_directory_can_replace_its_files() {
        // A user cannot give a file away.
        assert!(geteuid().is_root(), "run this test as root");
        let give = |path: &Path, user: u32| std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        let top = directory("owners");
        let (inner, file) = (top.join("inner"), top.join("inner/file"));
        fs::write(&file, "").unwrap();
        set(&file, 0o644);
        for place in [&top, &inner] {
            give(place, NOBODY);
            assert_eq!(untrusted(&file, &[0]), Some(format!("{} belongs to user {NOBODY}", place.display())));
            give(place, 0);
        }
        // Root and the user who runs nvpm are trusted, and other users are not.
        for (owner, why) in [(0, None), (NOBODY, None), (4711, Some("belongs to user 4711"))] {
            give(&file, owner);
            assert_eq!(untrusted(&file, &[0, NOBODY]), why.map(|why| format!("{} {why}", file.display())));
        }
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn users_and_links_are_not_trusted() {
        let top = directory("users");
        let (file, link) = (top.join("file"), top.join("link"));
        fs::write(&file, "").unwrap();
        symlink(&file, &link).unwrap();
        let user = geteuid().as_raw();
        set(&file, 0o644);
        assert_eq!(untrusted(&file, &[user + 1]), Some(format!("{} belongs to user {user}", file.display())));
        // Linux gives links all write rights.
        assert!(untrusted(&link, &[0, user]).is_some());
        let none = top.join("none");
        assert_eq!(untrusted(&none, &[0, user]), Some(format!("{}: No such file or directory", none.display())));
        fs::remove_dir_all(&top).unwrap();
    }
}
