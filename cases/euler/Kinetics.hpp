/// @file Kinetics.hpp
/// @brief Stiff kinetics in each cell: work that differs from cell to cell and moves, as that of chemistry does.
#pragma once

#include "Gas.hpp"

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Geom/Mesh/MeshView.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"

#include <array>
#include <utility>
#include <vector>

namespace Euler {

/// Species of Robertson's problem.
constexpr int species = 3;
using Fractions = std::array<real, species>;

/// The region of hot cells, which take many substeps; other cells take one.
struct HotRegion {
    Vector centre; ///< at time 0
    Vector velocity;
    real radius = 0;
    index substeps = 200;

    index substepsAt(Vector point, real time) const {
        const Vector away = point - centre - time * velocity;
        return dot(away, away) < radius * radius ? substeps : 1;
    }
};

/// Robertson's three stiff reactions over a second, by backward Euler and Newton's method. Local.
///
/// H. H. Robertson, "The solution of a set of reaction rate equations", in Numerical Analysis: An Introduction (1966).
Fractions react(const Fractions &before, index substeps);

/// The species of own cells. They do not act on the flow, and no cell knows its neighbours: fields have the same bits
/// on any partition.
class Kinetics {
  public:
    /// All of the first species. Collective. The mesh may go afterwards.
    Kinetics(const HotRegion &region, const DNDS::Geom::UnstructuredMesh &mesh);

    /// Reacts for a second, of the kinetics' own time, in a region as it is at `time` of the flow. Local.
    void advance(const DNDS::Geom::MeshMetrics &metrics, real time);
    /// Substeps of each own cell: what it costs. Local.
    std::vector<index> costs(const DNDS::Geom::MeshMetrics &metrics, real time) const;

    /// [own cells]
    const DNDS::ParArray<real, species> &fractions() const { return fractions_; }
    void setFractions(DNDS::ParArray<real, species> fractions) { fractions_ = std::move(fractions); }

    /// Of this rank, so far.
    double seconds() const { return seconds_; }
    index substeps() const { return substeps_; }

  private:
    HotRegion region_;
    DNDS::ParArray<real, species> fractions_;
    double seconds_ = 0;
    index substeps_ = 0;
};

} // namespace Euler
