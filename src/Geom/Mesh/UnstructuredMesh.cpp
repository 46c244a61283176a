#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <algorithm>
#include <vector>

namespace DNDS::Geom {

// Names appear in messages about the arrays.
UnstructuredMesh::UnstructuredMesh(CommunicatorView communicator)
    : comm(communicator), coordinates("coordinates", communicator), cellNodes("cell nodes", communicator),
      cellFaces("cell faces", communicator), cellCells("cell cells", communicator),
      nodeCells("node cells", communicator), faceNodes("face nodes", communicator),
      faceCells("face cells", communicator), facePatches("face patches", communicator) {}

/// Patches are few: a search by name, once for each loop.
const MeshPatch &UnstructuredMesh::patch(std::string_view name) const {
    const auto found = std::find_if(patches.begin(), patches.end(), [&](const MeshPatch &p) { return p.name == name; });
    if (found != patches.end())
        return *found;
    std::string names;
    for (const MeshPatch &each : patches)
        names += fmt::format("{}'{}'", names.empty() ? "" : ", ", each.name);
    throw ArgumentError(fmt::format("{}: there is no patch '{}'; there are: {}", origin, name, names));
}

// By positions of ghosts: the exchange leaves the rows of other layers as they are.
std::shared_ptr<const ExchangePattern> UnstructuredMesh::firstLayers(int layers) const {
    std::vector<index> ghosts;
    comm.guarded([&] {
        static_cast<void>(cells.builtPattern());
        DNDS_CHECK(layers >= 0 && layers <= ghostLayers, ArgumentError,
                   "{}: the first {} layers of ghosts were asked for, and the mesh was built with {} "
                   "(MeshOptions::ghostLayers)",
                   origin, layers, ghostLayers);
        // Ghosts of nearer layers may have any position among ghosts.
        for (index ghost = 0; ghost < cells.ghosts; ghost++)
            if (cellLayers[static_cast<std::size_t>(cells.owned + ghost)] <= layers)
                ghosts.push_back(ghost);
    });
    return cells.builtPattern().restrictedTo(ghosts);
}

} // namespace DNDS::Geom
