/// @file PeriodicImages.hpp
/// @brief Positions of copies of cells on the other side of periodic connections.
#pragma once

#include "DNDS/Geom/Source/ElementType.hpp"
#include "DNDS/Geom/Source/SourceMesh.hpp"

#include <map>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// Numbers the images that this rank's ghosts need: 0 is the mesh itself. Steps across different connections are
/// assumed to commute, as they do wherever periodic boundaries meet in an edge. All functions are Local.
/// Ranks number images in the order in which they meet them, so the numbers are local; MeshImage::Steps identify an
/// image between ranks.
class ImageTable {
  public:
    /// Steps of connections with nearly the same motion, or the inverse one, are identified; `lower` and `upper` are
    /// the corners of a box around the mesh, where motions are compared.
    ImageTable(const std::vector<PeriodicConnection> &connections, const Point &lower, const Point &upper);

    /// The step (>= 1) that moves a neighbour next to a cell at side `side` of `connection`, as stored in
    /// `FaceLink::step`. Throws DataError beyond 127 different motions.
    int stepAt(int connection, int side) const;
    /// Steps come in pairs: 2m + 1 forwards by motion m, 2m + 2 backwards.
    static int inverseStep(int step) { return step == 0 ? 0 : ((step - 1) ^ 1) + 1; }

    /// The image reached from `image` by `step`; step 0 changes nothing. O(1) or, for a step, O(log images). Throws
    /// DataError beyond 2^19 images.
    /// Memoised: the pairs of a mesh are few, while every ghost asks.
    int compose(int image, int step);
    std::vector<MeshImage> images() const { return images_; }
    const RigidMotion &motion(int image) const { return images_[static_cast<std::size_t>(image)].motion; }

  private:
    /// The step as the motion of a connection, applied once (+1) or backwards (-1).
    MeshImage::Steps generatorStep(int step) const {
        return {generators_[toSize((step - 1) / 2)], (step - 1) % 2 == 0 ? 1 : -1};
    }
    RigidMotion motionOfSteps(const std::vector<MeshImage::Steps> &steps) const;
    /// The image that the steps lead to, -1 if it is a new one.
    int sameImage(const std::vector<MeshImage::Steps> &steps, const RigidMotion &motion) const;

    Point lower_; ///< the box around the mesh, whose corners tell motions apart
    Point upper_;
    real tolerance_;                   ///< within it, motions lead to one image
    std::vector<RigidMotion> motions_; ///< [connections]
    /// [connections] The first connection with the same motion, times 1, or with the inverse motion, times -1.
    std::vector<MeshImage::Steps> canonical_;
    std::vector<int> generators_; ///< the first connection of each motion, ascending
    /// By number; image 0 has no steps.
    std::vector<MeshImage> images_;
    /// The numbers of `images_`, by their steps.
    std::map<std::vector<MeshImage::Steps>, int> numbers_;
    /// Results of `compose` for {image, step}.
    std::map<std::pair<int, int>, int> composed_;
};

/// A key that identifies a copy of an entity: its global number and its image.
/// Bits: 43 of the number, 19 of the image; image 0 gives the number itself.
inline index imageKey(index number, int image) { return (static_cast<index>(image) << 43) | number; }
inline index numberOfKey(index key) { return key & ((index{1} << 43) - 1); }
inline int imageOfKey(index key) { return static_cast<int>(key >> 43); }

} // namespace DNDS::Geom
