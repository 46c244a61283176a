/// @file Picture.hpp
/// @brief Pictures of the flow while it is computed: a plane through the mesh, as PNG files.
#pragma once

#include "Configuration.hpp"
#include "RunResult.hpp"
#include "Solver.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace Euler {

/// Draws a field of the cells that a plane meets, straight from memory: `picture-00000100.png` after step 100.
///
/// Each rank knows which pixels have their centre in its cells, and sends their values to rank 0, which writes the
/// file: 8 bytes a pixel. Pictures have the same bytes on any number of ranks. A pixel on a face takes the larger value
/// of both cells; in three dimensions, pixels between warped faces, which belong to neither cell, that of the pixel
/// to their left or above.
class Pictures {
  public:
    /// Collective. Throws ArgumentError on all ranks if the window shows nothing of the mesh.
    Pictures(const DNDS::Geom::UnstructuredMesh &mesh, const DNDS::Geom::MeshMetrics &metrics,
             const PictureChoice &choice, std::string folder);

    /// The mesh has another partition from now on. Collective. Cost: pixels of each cell's box x its faces.
    void moved(const DNDS::Geom::UnstructuredMesh &mesh, const DNDS::Geom::MeshMetrics &metrics);

    /// One picture. Collective. A file that cannot be written is reported once, as a warning of rank 0; then there are
    /// no more pictures, and the run continues.
    void write(const Solver &solver, const Gas &gas, const RunResult &now);

    /// Files written, and the seconds that this rank spent on them, waiting included. Local.
    PictureResult result() const noexcept { return result_; }

  private:
    struct Pixel {
        std::uint32_t place; ///< [height x width]
        DNDS::LocalIndex cell;
    };

    Vector pointOf(std::uint32_t column, std::uint32_t row) const;
    void addPixelsOf(index cell, const DNDS::Geom::MeshView &view);
    std::vector<float> gathered(const Solver &solver, const Gas &gas) const;
    void fillGaps(std::vector<float> &values) const;
    std::string png(const std::vector<float> &values, const RunResult &now) const;

    DNDS::CommunicatorView comm_;
    PictureChoice choice_;
    std::string folder_;
    bool solid_;                       ///< a mesh of three dimensions
    std::array<int, 3> axes_{0, 1, 2}; ///< along the width, along the height, across the plane
    std::array<real, 4> window_{};
    real at_ = 0;
    std::uint32_t width_ = 0, height_ = 0;
    std::vector<Pixel> pixels_; ///< pixels of own cells
    bool stopped_ = false;
    PictureResult result_;
};

} // namespace Euler
