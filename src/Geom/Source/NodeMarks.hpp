/// @file NodeMarks.hpp
/// @brief The marks of nodes of a source, asked for on any rank.
#pragma once

#include "DNDS/Geom/Source/CsrLists.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// For each of `nodes`, which are distinct, the marks that the source gives it, ascending. Collective; `blocks` numbers
/// the nodes of the source.
CsrLists<int> fetchNodeMarks(const GlobalMapping &blocks, const SourceMesh &source, std::span<const index> nodes);

/// The marks that all `nodes` have; `marksOf(node)` are those of one, ascending. Local.
/// A face is in a patch given by nodes if the intersection of its corners' marks has the patch. O(sum of the marks);
/// corners have one to three.
template <class MarksOf>
std::vector<int> commonMarks(std::span<const index> nodes, MarksOf &&marksOf) {
    const auto start = marksOf(nodes[0]);
    std::vector<int> common(start.begin(), start.end());
    std::vector<int> rest;
    for (const index node : nodes.subspan(1)) {
        if (common.empty())
            break;
        rest.clear();
        std::ranges::set_intersection(common, marksOf(node), std::back_inserter(rest));
        common.swap(rest);
    }
    return common;
}

} // namespace DNDS::Geom
