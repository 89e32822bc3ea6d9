//! Groups of this node, from its own files.

use std::fs;

use super::error::SegmentError;

/// The number of the group called `name`; a number stands for itself.
pub(super) fn group_number(name: &str) -> Result<u32, SegmentError> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let found = groups().find(|(known, ..)| known == name);
    found
        .map(|(_, number, _)| number)
        .ok_or_else(|| SegmentError::UnknownGroup(name.to_owned()))
}

/// Whether a user belongs to the group called `group`, as its first one or as a member.
pub fn is_member(user: u32, group: &str) -> bool {
    let Ok(number) = group_number(group) else {
        return false;
    };
    // Without the file no user is known, and nobody is a member.
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let known = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_asked_for = fields.get(2)?.parse() == Ok(user);
        is_asked_for.then_some((fields[0].to_owned(), fields.get(3)?.parse::<u32>().ok()?))
    });
    known.is_some_and(|(name, first)| {
        let is_named = |members: &str| members.split(',').any(|member| member == name);
        first == number || groups().any(|(_, known, members)| known == number && is_named(&members))
    })
}

/// Name, number and members of every group; nothing without the node's file.
fn groups() -> impl Iterator<Item = (String, u32, String)> {
    let text = fs::read_to_string("/etc/group").unwrap_or_default();
    let groups: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let members = fields.get(3).copied().unwrap_or_default();
            Some((
                fields[0].to_owned(),
                fields.get(2)?.parse().ok()?,
                members.to_owned(),
            ))
        })
        .collect();
    groups.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_in_its_first_group_and_in_no_other() {
        assert!(is_member(0, "0"));
        assert!(is_member(0, "root"));
        assert!(!is_member(0, "4294967294"));
        assert!(!is_member(4_294_967_294, "root"));
        assert!(!is_member(0, "no_such_group_here"));
    }
}
