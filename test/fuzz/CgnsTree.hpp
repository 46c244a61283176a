/// @file CgnsTree.hpp
/// @brief CGNS files as trees, which can be damaged without damaging the container that they are stored in.
#pragma once

#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "Geom/Cgns/CgnsFile.hpp"
#include "fuzz/Random.hpp"

#include <string>
#include <vector>

namespace DNDS::Geom::fuzz {

struct CgnsNode {
    std::string name;
    std::string label;
    test::Data data{};
    std::vector<int> dimensions{};
    std::vector<CgnsNode> children{};
};

/// A whole mesh: a MIXED section, or NGON_n and NFACE_n where it has polyhedra, patches as sections of faces with
/// boundary conditions by ranges and lists, and a periodic connection where the mesh has one.
CgnsNode cgnsTree(const SourceMesh &mesh);

/// One to three changes: nodes renamed, relabelled, removed, repeated, moved; other types, sizes and values. Local.
void mutate(CgnsNode &root, Random &random);

/// The file of a tree whose root is `CGNSBase_t`. Local. Throws std::runtime_error where the library refuses to write.
std::string cgnsBytes(const CgnsNode &base, test::FileType type);

} // namespace DNDS::Geom::fuzz
