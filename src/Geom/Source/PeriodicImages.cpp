#include "DNDS/Geom/Source/PeriodicImages.hpp"

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"

#include <algorithm>
#include <cmath>

namespace DNDS::Geom {

namespace {

// Keys of cells have 19 bits for the image.
constexpr int maxImages = 1 << 19;

/// The largest distance between the images of a box's corners under two motions. A rigid motion is determined by these
/// images, and the distances there bound those inside.
/// The difference of two rigid motions is affine, hence its norm convex: its maximum over the box is at a corner.
/// O(1).
real distanceOf(const RigidMotion &a, const RigidMotion &b, const Point &lower, const Point &upper) {
    real most = 0;
    for (unsigned corner = 0; corner < 8; corner++) {
        Point x;
        for (std::size_t d = 0; d < 3; d++)
            x[d] = ((corner >> d) & 1U) != 0 ? upper[d] : lower[d];
        most = std::max(most, norm(a(x) - b(x)));
    }
    return most;
}

} // namespace

/// O(connections^2): meshes of several zones split one periodic boundary into tens of connections, which become one
/// generator here.
ImageTable::ImageTable(const std::vector<PeriodicConnection> &connections, const Point &lower, const Point &upper)
    : lower_(lower), upper_(upper) {
    constexpr real tolerance = 1e-6; // of the diagonal: files often give angles in single precision
    constexpr real still = 1e-9;     // less is no motion
    const real size = norm(upper - lower);
    // Errors of several motions add up, but neighbouring images of a thin domain are not one.
    tolerance_ = 1e-5 * size;
    for (std::size_t c = 0; c < connections.size(); c++) {
        motions_.push_back(motionOf(connections[c].transform));
        // The earliest of the motions so far that is equal or inverse represents each connection.
        MeshImage::Steps step{static_cast<int>(c), 0};
        for (const int earlier : generators_) {
            const RigidMotion &other = motions_[toSize(earlier)];
            const real there = distanceOf(other, motions_[c], lower, upper);
            const real back = distanceOf(other.inverse(), motions_[c], lower, upper);
            if (std::min(there, back) > tolerance * size)
                continue;
            step = {earlier, there <= back ? 1 : -1};
            break;
        }
        // A new motion: it generates images, and its length bounds how near two of them can be.
        if (step.times == 0) {
            step.times = 1;
            generators_.push_back(step.connection);
            if (const real moved = distanceOf(motions_[c], {}, lower, upper); moved > still * size)
                tolerance_ = std::min(tolerance_, 0.1 * moved);
        }
        canonical_.push_back(step);
    }
    images_.emplace_back();
    numbers_.emplace(images_[0].steps, 0);
}

/// A cell at side 1 has its neighbours at side 0, which the connection's motion brings here: an odd step, forwards.
/// O(log motions).
int ImageTable::stepAt(int connection, int side) const {
    const MeshImage::Steps step = canonical_[static_cast<std::size_t>(connection)];
    const bool forward = (side == 1) == (step.times > 0); // a cell at the second side has neighbours at the first
    const auto motion = std::ranges::lower_bound(generators_, step.connection) - generators_.begin();
    const int number = 1 + 2 * static_cast<int>(motion) + (forward ? 0 : 1);
    DNDS_CHECK(number < FaceLink::maxSteps, DataError, "{} periodic connections with different motions are too many",
               generators_.size());
    return number;
}

/// Multiplied in ascending order of connections; with commuting steps any order gives the same motion.
RigidMotion ImageTable::motionOfSteps(const std::vector<MeshImage::Steps> &steps) const {
    RigidMotion motion;
    for (const MeshImage::Steps &step : steps) {
        const RigidMotion &forward = motions_[static_cast<std::size_t>(step.connection)];
        const RigidMotion once = step.times > 0 ? forward : forward.inverse();
        for (int k = 0; k < std::abs(step.times); k++)
            motion = motion * once;
    }
    return motion;
}

/// The image with this motion, made of these steps or others: where motions depend on each other, as those of a hexagon
/// (a - b + c = 0) or turns by 180 degrees do, several lists of steps lead to one image. A single step across a
/// connection that does not move anything (a baffle) is not the mesh itself. O(images).
int ImageTable::sameImage(const std::vector<MeshImage::Steps> &steps, const RigidMotion &motion) const {
    const bool single = steps.size() == 1 && std::abs(steps[0].times) == 1;
    for (std::size_t image = single ? 1 : 0; image < images_.size(); image++)
        if (const RigidMotion &known = images_[image].motion;
            norm(known(lower_) - motion(lower_)) <= tolerance_ && // one corner tells most of them apart
            distanceOf(known, motion, lower_, upper_) <= tolerance_)
            return static_cast<int>(image);
    return -1;
}

/// Adds the step to the exponent of its connection and keeps the list sorted without zeros: a normal form, so equal
/// images have equal steps however they were reached, unless motions depend on each other.
/// O(log compositions) if known; a new one costs O(images), and images are few.
int ImageTable::compose(int image, int step) {
    if (step == 0)
        return image;
    // Results are kept: ghost layers ask for the same few compositions for each face.
    const auto [found, isNew] = composed_.try_emplace({image, step}, 0);
    if (!isNew)
        return found->second;
    const MeshImage::Steps move = generatorStep(step);
    std::vector<MeshImage::Steps> steps = images_[static_cast<std::size_t>(image)].steps;
    auto place = steps.begin();
    while (place != steps.end() && place->connection < move.connection)
        ++place;
    if (place == steps.end() || place->connection != move.connection)
        place = steps.insert(place, {move.connection, 0});
    place->times += move.times;
    if (place->times == 0)
        steps.erase(place);
    const auto [number, unknown] = numbers_.try_emplace(steps, static_cast<int>(images_.size()));
    if (unknown) {
        // Other steps may lead to an image that is known: then these are remembered for it.
        DNDS_CHECK(images_.size() < static_cast<std::size_t>(maxImages), DataError,
                   "ghost layers need more than {} periodic images", maxImages);
        const RigidMotion motion = motionOfSteps(steps);
        if (const int same = sameImage(steps, motion); same >= 0)
            number->second = same;
        else
            images_.push_back({steps, motion});
    }
    return found->second = number->second;
}

} // namespace DNDS::Geom
