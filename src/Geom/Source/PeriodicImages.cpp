#include "DNDS/Geom/Source/PeriodicImages.hpp"

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"

#include <algorithm>
#include <cmath>

namespace DNDS::Geom {

namespace {

constexpr int maxImages = 1 << 19;

RigidMotion rotationAbout(std::size_t axis, real angle) {
    RigidMotion motion;
    const std::size_t i = (axis + 1) % 3;
    const std::size_t j = (axis + 2) % 3;
    motion.matrix[3 * i + i] = motion.matrix[3 * j + j] = std::cos(angle);
    motion.matrix[3 * i + j] = -std::sin(angle);
    motion.matrix[3 * j + i] = std::sin(angle);
    return motion;
}

/// Whether two motions bring the corners of a box to the same places, nearly.
bool sameMotion(const RigidMotion &a, const RigidMotion &b, const Point &lower, const Point &upper) {
    constexpr real tolerance = 1e-6;
    const real size = norm(upper - lower);
    for (unsigned corner = 0; corner < 8; corner++) {
        Point x;
        for (std::size_t d = 0; d < 3; d++)
            x[d] = ((corner >> d) & 1U) != 0 ? upper[d] : lower[d];
        if (norm(a(x) - b(x)) > tolerance * size)
            return false;
    }
    return true;
}

} // namespace

Point RigidMotion::rotate(const Point &v) const {
    Point result;
    for (std::size_t d = 0; d < 3; d++)
        result[d] = matrix[3 * d] * v[0] + matrix[3 * d + 1] * v[1] + matrix[3 * d + 2] * v[2];
    return result;
}

Point RigidMotion::operator()(const Point &x) const { return rotate(x) + shift; }

RigidMotion RigidMotion::inverse() const {
    RigidMotion result;
    for (std::size_t i = 0; i < 3; i++)
        for (std::size_t j = 0; j < 3; j++)
            result.matrix[3 * i + j] = matrix[3 * j + i];
    result.shift = -1.0 * result.rotate(shift);
    return result;
}

RigidMotion operator*(const RigidMotion &after, const RigidMotion &before) {
    RigidMotion result;
    for (std::size_t i = 0; i < 3; i++)
        for (std::size_t j = 0; j < 3; j++) {
            result.matrix[3 * i + j] = 0.0;
            for (std::size_t k = 0; k < 3; k++)
                result.matrix[3 * i + j] += after.matrix[3 * i + k] * before.matrix[3 * k + j];
        }
    result.shift = after(before.shift);
    return result;
}

RigidMotion motionOf(const PeriodicTransform &transform) {
    RigidMotion rotation;
    for (std::size_t axis = 0; axis < 3; axis++)
        rotation = rotationAbout(axis, transform.angles[axis]) * rotation;
    rotation.shift = transform.centre - rotation.rotate(transform.centre) + transform.translation;
    return rotation;
}

std::array<real, 3> anglesOf(const std::array<real, 9> &matrix) {
    // Where the turn about y is a right angle, those about x and z turn about one axis, and nearly so around it: the
    // one about x is what is left after the other is undone, however badly that one is known.
    const real z = std::atan2(matrix[3], matrix[0]);
    const real y = std::atan2(-matrix[6], std::hypot(matrix[0], matrix[3]));
    const real x = std::atan2(std::sin(z) * matrix[2] - std::cos(z) * matrix[5],
                              std::cos(z) * matrix[4] - std::sin(z) * matrix[1]);
    return {x, y, z};
}

PeriodicTransform inverseOf(const PeriodicTransform &transform) {
    PeriodicTransform inverse;
    inverse.centre = transform.centre;
    const RigidMotion back = motionOf({{}, transform.angles, {}}).inverse();
    inverse.angles = anglesOf(back.matrix);
    if (std::count(transform.angles.begin(), transform.angles.end(), 0.0) >= 2) // about one axis: to the last bit
        inverse.angles = -1.0 * transform.angles;
    inverse.translation = -1.0 * back.rotate(transform.translation);
    return inverse;
}

ImageTable::ImageTable(const std::vector<PeriodicConnection> &connections, const Point &lower, const Point &upper) {
    for (std::size_t c = 0; c < connections.size(); c++) {
        motions_.push_back(motionOf(connections[c].transform));
        PeriodicStep step{static_cast<int>(c), 1};
        for (std::size_t earlier = c; earlier-- > 0;) {
            if (sameMotion(motions_[earlier], motions_[c], lower, upper))
                step = {static_cast<int>(earlier), 1};
            else if (sameMotion(motions_[earlier].inverse(), motions_[c], lower, upper))
                step = {static_cast<int>(earlier), -1};
        }
        canonical_.push_back(step);
    }
    images_.emplace_back();
    numbers_.emplace(images_[0].steps, 0);
}

int ImageTable::stepAt(int connection, int side) const {
    const PeriodicStep step = canonical_[static_cast<std::size_t>(connection)];
    const bool forward = (side == 1) == (step.direction > 0); // a cell at the second side has neighbours at the first
    const int number = 1 + 2 * step.connection + (forward ? 0 : 1);
    DNDS_CHECK(number < FaceLink::maxSteps, DataError, "{} periodic connections with different motions are too many",
               motions_.size());
    return number;
}

PeriodicStep ImageTable::generatorStep(int step) const { return {(step - 1) / 2, (step - 1) % 2 == 0 ? 1 : -1}; }

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

int ImageTable::compose(int image, int step) {
    if (step == 0)
        return image;
    const auto [found, isNew] = composed_.try_emplace({image, step}, 0);
    if (!isNew)
        return found->second;
    const PeriodicStep move = generatorStep(step);
    std::vector<MeshImage::Steps> steps = images_[static_cast<std::size_t>(image)].steps;
    auto place = steps.begin();
    while (place != steps.end() && place->connection < move.connection)
        ++place;
    if (place == steps.end() || place->connection != move.connection)
        place = steps.insert(place, {move.connection, 0});
    place->times += move.direction;
    if (place->times == 0)
        steps.erase(place);
    const auto [number, unknown] = numbers_.try_emplace(steps, static_cast<int>(images_.size()));
    if (unknown) {
        DNDS_CHECK(images_.size() < static_cast<std::size_t>(maxImages), DataError,
                   "ghost layers need more than {} periodic images", maxImages);
        images_.push_back({steps, motionOfSteps(steps)});
    }
    return found->second = number->second;
}

} // namespace DNDS::Geom
