//! Why a program cannot be served, as far as its file tells: what kind it is, and whether the loader
//! lets anything be loaded into it.

use lockstep_protocol::program::{ProgramKind, inspect};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How often an interpreter may be a script in its turn, as in the kernel.
const INTERPRETERS: u32 = 4;

/// A sentence about what keeps a program from being served; `None` if nothing is known.
pub fn obstacle(path: &Path) -> Option<String> {
    obstacle_within(path, INTERPRETERS)
}

fn obstacle_within(path: &Path, left: u32) -> Option<String> {
    // A file that cannot be read for this has run, so it is no reason to fail.
    let kind = inspect(path).unwrap_or(ProgramKind::Unknown);
    match &kind {
        ProgramKind::Script(interpreter) if left > 0 => {
            let interpreter = Path::new(interpreter);
            obstacle_within(interpreter, left - 1).map(|found| {
                format!(
                    "its interpreter {} cannot be served: {found}",
                    interpreter.display()
                )
            })
        }
        // Of scripts, rights of their own are ignored.
        ProgramKind::Script(_) => None,
        _ => privileges(path).or_else(|| kind.obstacle().map(str::to_string)),
    }
}

/// Whether a program gets rights that we do not have: then the loader ignores what we tell it.
fn privileges(path: &Path) -> Option<String> {
    let metadata = path.metadata().ok()?;
    let user = rustix::process::getuid().as_raw();
    let group = rustix::process::getgid().as_raw();
    let gained = gained(&metadata, user, group).or_else(|| {
        // File capabilities change nothing for root, who has them all.
        (user != 0 && has_capabilities(path)).then_some("with capabilities of its file")
    })?;
    Some(format!(
        "it runs {gained}, so the loader ignores LD_PRELOAD and LD_LIBRARY_PATH for it, and its CUDA \
         calls cannot be redirected; run a copy without these rights (`cp` drops them)"
    ))
}

fn gained(file: &Metadata, user: u32, group: u32) -> Option<&'static str> {
    const SET_USER: u32 = 0o4000;
    /// Without the right to execute for the group, the bit means something else.
    const SET_GROUP: u32 = 0o2010;
    if file.mode() & SET_USER != 0 && file.uid() != user {
        return Some("as another user (setuid)");
    }
    if file.mode() & SET_GROUP == SET_GROUP && file.gid() != group {
        return Some("as another group (setgid)");
    }
    None
}

fn has_capabilities(path: &Path) -> bool {
    let mut bytes = [0u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_with_rights_of_its_own_is_named() {
        let path = std::env::temp_dir().join(format!("lockstep-setuid-{}", std::process::id()));
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        let set = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path.metadata().unwrap()
        };
        let (user, group) = (set(0o755).uid(), set(0o755).gid());
        let (other, others) = (user + 1, group + 1);
        assert_eq!(gained(&set(0o755), other, others), None);
        let set_user = set(0o4755);
        assert!(gained(&set_user, other, group).unwrap().contains("setuid"));
        assert_eq!(gained(&set_user, user, group), None);
        let set_group = set(0o2755);
        assert!(gained(&set_group, user, others).unwrap().contains("setgid"));
        assert_eq!(gained(&set(0o2745), user, others), None);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_plain_has_no_obstacle() {
        assert_eq!(obstacle(&std::env::current_exe().unwrap()), None);
        assert_eq!(obstacle(Path::new("/nowhere")), None);
        assert_eq!(obstacle(Path::new("/bin/sh")), None);
    }
}
