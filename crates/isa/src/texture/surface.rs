//! Where an access to a surface goes.

use lockstep_units::TextureObject;

use super::{Bounds, Geometry};

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To this address.
    At(u64),
    /// Nowhere: it reads zero and writes nothing.
    Nowhere,
    /// Outside, where it may not.
    Outside,
}

/// The coordinates of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Along each dimension; x in bytes unless `texels`.
    pub coordinates: [i32; 3],
    /// Layer.
    pub layer: u32,
    /// Bytes that are accessed.
    pub bytes: u32,
    /// x counts texels.
    pub texels: bool,
}

/// Finds the place of an access.
#[must_use]
pub fn place(
    object: &TextureObject,
    geometry: Geometry,
    request: &Request,
    bounds: Bounds,
) -> Place {
    let level = &object.levels[0];
    let texel = i64::from(object.format.bytes());
    let row = i64::from(level.width) * texel;
    let mut x = i64::from(request.coordinates[0]);
    if request.texels {
        x *= texel;
    }
    let last = row - i64::from(request.bytes);
    let y = match geometry.dimensions {
        1 => 0,
        _ => i64::from(request.coordinates[1]),
    };
    let z = match (geometry.layered, geometry.dimensions) {
        (true, _) => i64::from(request.layer),
        (false, 3) => i64::from(request.coordinates[2]),
        _ => 0,
    };
    let ends = [
        last,
        i64::from(level.height) - 1,
        i64::from(level.depth) - 1,
    ];
    let mut places = [x, y, z];
    let inside = places
        .iter()
        .zip(ends)
        .all(|(place, end)| (0..=end).contains(place));
    if !inside {
        match bounds {
            Bounds::Trap => return Place::Outside,
            Bounds::Zero => return Place::Nowhere,
            Bounds::Clamp => {
                for (place, end) in places.iter_mut().zip(ends) {
                    *place = (*place).min(end).max(0);
                }
            }
        }
    }
    let [x, y, z] = places.map(|place| place as u64);
    Place::At(level.address + z * level.slice_pitch + y * level.row_pitch + x)
}
