/// @file FoamCaseFiles.hpp
/// @brief For tests only: writes meshes as OpenFOAM's manual describes constant/polyMesh.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "support/GatheredMesh.hpp"
#include "support/TemporaryFolder.hpp"

#include <array>
#include <string>
#include <vector>

namespace DNDS::Geom::test {

struct FoamFileOptions {
    bool binary = false;
    bool compact = true; ///< faces of binary files
    bool swapped = false;
    bool arch = true; ///< in the header; without it integers have 32 bits, numbers 64
    int labelBits = 32;
    int scalarBits = 64;
    int digits = 17; ///< in coordinates as text
    bool compressed = false;
};

/// The lists of a mesh, in OpenFOAM's order: inner faces ascend by owner and neighbour, then those of patches follow.
struct FoamLists {
    struct Patch {
        std::string name;
        std::string type;
        std::string more; ///< further entries
        index size;
        index begin;
    };
    std::vector<std::array<real, 3>> points;
    std::vector<Face> faces;
    std::vector<index> owner;
    std::vector<index> neighbour;
    std::vector<Patch> patches;
};

/// The lists of a whole mesh. Periodic connections become the cyclic patches "<name>_first" and "<name>_second".
FoamLists foamLists(const SourceMesh &mesh);

/// The content of points, faces, owner, neighbour or boundary.
std::string foamFile(const FoamLists &lists, const std::string &name, const FoamFileOptions &options = {});

/// Text as gzip compresses it; empty without zlib.
std::string gzipped(const std::string &content);

/// A case in a folder of its own. Functions are Collective.
class FoamCase {
  public:
    FoamCase() = default;
    explicit FoamCase(const FoamLists &lists, const FoamFileOptions &options = {}) { write(lists, options); }

    std::string path() const { return folder_.path(); }
    std::string file(const std::string &name) const { return folder_.file(name); }
    /// `name` is within the case; folders are made. With empty content the file is removed.
    void put(const std::string &name, const std::string &content) const;
    void write(const FoamLists &lists, const FoamFileOptions &options) const;

  private:
    DNDS::test::TemporaryFolder folder_;
};

inline constexpr std::array foamNames{"points", "faces", "owner", "neighbour", "boundary"};

} // namespace DNDS::Geom::test
