#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include "DNDS/Base/ContentHash.hpp"
#include "DNDS/Geom/Source/NumberTable.hpp"

#include <bit>

namespace DNDS::Geom {

namespace {

// File numbers of owned entities are never negative.
std::uint64_t asUnsigned(index number) { return static_cast<std::uint64_t>(number); }

std::uint64_t hashOfNumber(index number) {
    ContentHash hash;
    hash.add(asUnsigned(number));
    return hash.value();
}

} // namespace

// Adds hashes of entities, so that the sum does not depend on their order or owner: a multiset hash by addition (Clarke
// and others, Incremental multiset hash functions, ASIACRYPT 2003), here without cryptographic strength. O(cells +
// nodes).
// One reduction of a word. Coordinates enter by their bits, with -0 as 0; ghosts are left out, so each entity
// counts once.
std::uint64_t fingerprint(const UnstructuredMesh &mesh) {
    std::uint64_t sum = 0; // of hashes: independent of the order
    const auto cellNodes = mesh.cellNodes.view();
    for (index cell = 0; cell < mesh.cells.owned; cell++) {
        const ElementType type = mesh.cellTypes[toSize(cell)];
        ContentHash hash;
        hash.add(asUnsigned(mesh.cells.fileNumbers[toSize(cell)]));
        hash.add(static_cast<std::uint64_t>(type));
        std::uint64_t nodes = 0;
        for (const LocalIndex node : cellNodes[cell]) {
            const index number = mesh.nodes.fileNumbers[static_cast<std::size_t>(node)];
            if (type == ElementType::Polyhedron) // its nodes are a set
                nodes += hashOfNumber(number);
            else
                hash.add(asUnsigned(number));
        }
        if (type == ElementType::Polyhedron)
            hash.add(nodes);
        sum += hash.value();
    }
    const auto coordinates = mesh.coordinates.view();
    for (index node = 0; node < mesh.nodes.owned; node++) {
        ContentHash hash;
        hash.add(asUnsigned(mesh.nodes.fileNumbers[toSize(node)]));
        for (rowsize d = 0; d < 3; d++)
            hash.add(std::bit_cast<std::uint64_t>(coordinates(node, d) + 0.0)); // -0 is 0
        sum += hash.value();
    }
    return mesh.comm.allReduce(sum, MPI_SUM);
}

} // namespace DNDS::Geom
