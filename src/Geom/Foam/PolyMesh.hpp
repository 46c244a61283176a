/// @file PolyMesh.hpp
/// @brief Positions of lists in the files of a mesh of OpenFOAM, and its patches, known on all ranks.
#pragma once

#include "DNDS/Geom/File/FileSegments.hpp"
#include "DNDS/Geom/Foam/FoamSyntax.hpp"
#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <string>
#include <vector>

namespace DNDS::Geom::Foam {

/// A file that holds one list.
/// Found by rank 0 and broadcast; all ranks open the file themselves.
struct ListFile {
    std::string path;
    Encoding encoding;
    bool compact = false; ///< faces as a list of offsets and one of corners: `secondPlace` is that of the corners
    bool uniform = false; ///< all entries have the one value in the file
    /// Number of entries.
    index count = 0;
    index corners = 0; ///< total of all faces, if compact
    std::vector<FileSegment> segments;
};

/// Faces `begin` to `begin + size`.
struct Patch {
    std::string name;
    std::string type;
    std::string neighbour; ///< cyclic patches: the other side
    std::string transform; ///< cyclic patches: "rotational", "translational", or how the file leaves it open
    index begin = 0;
    index size = 0;
    Point axis{}; ///< cyclic patches: axis of their rotation; zeros if the file has none
    Point centre{};
};

/// The same on all ranks.
struct PolyMesh {
    std::string folder;
    ListFile points;
    ListFile faces;
    ListFile owner;
    ListFile neighbour;
    std::vector<Patch> patches;
};

/// Scans the files of a mesh. Collective: rank 0 reads. The segments of faces, owners and neighbours begin at the same
/// faces. Throws DataError on all ranks if a file is missing or damaged, or if the lengths of lists contradict each
/// other.
PolyMesh scanPolyMesh(CommunicatorView comm, const std::string &path, const std::string &region);

/// Takes an entry of a list of integers, which must be in [lowest, highest]. Local.
index takeLabel(FileCursor &cursor, const Encoding &encoding, std::string_view what, index lowest, index highest);

/// Takes an entry of a list of points. Local.
Point takePoint(FileCursor &cursor, const Encoding &encoding);

} // namespace DNDS::Geom::Foam
