#include "Picture.hpp"

#include "Png.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

namespace Euler {

namespace {

namespace Geom = DNDS::Geom;

constexpr float nothing = -std::numeric_limits<float>::infinity(); ///< value of pixels outside the mesh

/// Low and high of each coordinate over the owned nodes of all ranks. Collective.
std::array<std::array<real, 2>, 3> boxOf(const Geom::UnstructuredMesh &mesh) {
    std::array<real, 6> most;
    most.fill(-std::numeric_limits<real>::infinity());
    for (index node = 0; node < mesh.nodes.owned; node++)
        for (std::size_t d = 0; d < 3; d++) {
            const real x = mesh.coordinates(node, static_cast<DNDS::rowsize>(d));
            most[d] = std::max(most[d], -x);
            most[3 + d] = std::max(most[3 + d], x);
        }
    mesh.comm.allReduce(most.data(), static_cast<int>(most.size()), MPI_MAX);
    return {{{-most[0], most[3]}, {-most[1], most[4]}, {-most[2], most[5]}}};
}

real valueOf(PictureField field, const Primitive &w, const Gas &gas) {
    switch (field) {
    case PictureField::Density:
        return w.density;
    case PictureField::Pressure:
        return w.pressure;
    case PictureField::Speed:
        return std::sqrt(dot(w.velocity, w.velocity));
    case PictureField::Mach:
        break;
    }
    return gas.mach(w);
}

/// The first and the last whole number in [low, high] that is a pixel; the last one is less if none is.
std::array<index, 2> pixelsBetween(real low, real high, std::uint32_t size) {
    return {static_cast<index>(std::ceil(std::clamp<real>(low, 0, size))),
            static_cast<index>(std::floor(std::clamp<real>(high, -1, static_cast<real>(size) - 1)))};
}

void writeWhole(const std::string &path, const std::string &bytes) {
    const std::string temporary = path + ".part"; // whoever watches the folder sees whole pictures
    std::ofstream file(temporary, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::error_code error;
    if (file.good())
        std::filesystem::rename(temporary, path, error);
    DNDS_CHECK(file.good() && !error, DNDS::DataError, "{} cannot be written", path);
}

} // namespace

Pictures::Pictures(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics, const PictureChoice &choice,
                   std::string folder)
    : comm_(mesh.comm), choice_(choice), folder_(std::move(folder)), solid_(mesh.dimension == 3), width_(choice.width) {
    const auto box = boxOf(mesh);
    if (solid_ && choice_.normal == 0)
        axes_ = {1, 2, 0};
    else if (solid_ && choice_.normal == 1)
        axes_ = {0, 2, 1};
    const auto [across, up, normal] = std::array{static_cast<std::size_t>(axes_[0]), static_cast<std::size_t>(axes_[1]),
                                                 static_cast<std::size_t>(axes_[2])};
    window_ = choice_.window.value_or(std::array{box[across][0], box[across][1], box[up][0], box[up][1]});
    at_ = choice_.at.value_or(0.5 * (box[normal][0] + box[normal][1]));
    const real shape = (window_[3] - window_[2]) / (window_[1] - window_[0]);
    height_ = static_cast<std::uint32_t>(std::lround(std::clamp<real>(shape * width_, 16, 4096)));
    moved(mesh, metrics);
    const auto seen = comm_.allReduce(static_cast<index>(pixels_.size()), MPI_SUM);
    DNDS_CHECK(seen > 0, DNDS::ArgumentError,
               "output.picture shows nothing of the mesh, which is [{}, {}] x [{}, {}] x [{}, {}]: choose another "
               "window or plane",
               box[0][0], box[0][1], box[1][0], box[1][1], box[2][0], box[2][1]);
}

/// The centre of a pixel; row 0 is at the top.
Vector Pictures::pointOf(std::uint32_t column, std::uint32_t row) const {
    std::array<real, 3> point{};
    point[static_cast<std::size_t>(axes_[0])] = std::lerp(window_[0], window_[1], (column + 0.5) / width_);
    point[static_cast<std::size_t>(axes_[1])] = std::lerp(window_[3], window_[2], (row + 0.5) / height_);
    point[static_cast<std::size_t>(axes_[2])] = at_;
    return {point[0], point[1], point[2]};
}

/// Adds pixels whose centre lies inside the planes of all faces.
void Pictures::addPixelsOf(index cell, const Geom::MeshView &view) {
    std::array<real, 3> low, high;
    low.fill(std::numeric_limits<real>::infinity());
    high.fill(-std::numeric_limits<real>::infinity());
    for (const DNDS::LocalIndex node : view.cellNodes[cell])
        for (std::size_t d = 0; d < 3; d++) {
            const real x = view.coordinates(node, axes_[d]);
            low[d] = std::min(low[d], x);
            high[d] = std::max(high[d], x);
        }
    if (solid_ && (at_ < low[2] || at_ > high[2]))
        return;
    const real across = width_ / (window_[1] - window_[0]), up = height_ / (window_[3] - window_[2]);
    const auto columns =
        pixelsBetween((low[0] - window_[0]) * across - 0.5, (high[0] - window_[0]) * across - 0.5, width_);
    const auto rows = pixelsBetween((window_[3] - high[1]) * up - 0.5, (window_[3] - low[1]) * up - 0.5, height_);
    const auto size = std::max({high[0] - low[0], high[1] - low[1], solid_ ? high[2] - low[2] : 0});
    const auto faces = view.cellFaces[cell];
    const auto holds = [&](Vector point) {
        for (DNDS::rowsize k = 0; k < faces.size(); k++) {
            const Vector outward = Vector::load(view.areaVectors[faces[k]]);
            Vector from = point - Vector::load(view.faceCentres[faces[k]]);
            if (!solid_)
                from.z = 0;
            const real distance = (Geom::pointsOut(view.faceCells, faces, cell, k) ? 1 : -1) * dot(from, outward);
            if (distance > 1e-9 * size * view.areas(faces[k]))
                return false;
        }
        return true;
    };
    for (index row = rows[0]; row <= rows[1]; row++)
        for (index column = columns[0]; column <= columns[1]; column++)
            if (holds(pointOf(static_cast<std::uint32_t>(column), static_cast<std::uint32_t>(row))))
                pixels_.push_back(
                    {static_cast<std::uint32_t>(row * width_ + column), static_cast<DNDS::LocalIndex>(cell)});
}

void Pictures::moved(const Geom::UnstructuredMesh &mesh, const Geom::MeshMetrics &metrics) {
    comm_.guarded([&] {
        pixels_.clear();
        const Geom::MeshView view = viewOf(mesh, metrics);
        for (index cell = 0; cell < view.ownedCells; cell++)
            addPixelsOf(cell, view);
    });
}

/// The values of all pixels, on rank 0. Collective.
std::vector<float> Pictures::gathered(const Solver &solver, const Gas &gas) const {
    DNDS::RankLists outgoing;
    comm_.guarded([&] {
        const ParArray<real, variables> &state = solver.state();
        std::vector<index> words; // a pixel and its value
        words.reserve(pixels_.size());
        for (const Pixel &pixel : pixels_) {
            const auto value = static_cast<float>(valueOf(choice_.field, Primitive::load(state[pixel.cell]), gas));
            words.push_back(
                std::bit_cast<index>(std::uint64_t{pixel.place} << 32U | std::bit_cast<std::uint32_t>(value)));
        }
        outgoing.append(0, words);
    });
    const DNDS::RankLists incoming = sparseExchange(*DNDS::CommunicatorContext::of(comm_), outgoing);
    std::vector<float> values;
    comm_.guarded([&] {
        if (comm_.rank() == 0)
            values.assign(std::size_t{width_} * height_, nothing);
        for (const index word : incoming.values) {
            const auto bits = std::bit_cast<std::uint64_t>(word);
            float &value = values[bits >> 32U];
            value = std::max(value, std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
        }
    });
    return values;
}

/// Faces are tested as planes: between two warped ones a pixel may belong to neither cell.
void Pictures::fillGaps(std::vector<float> &values) const {
    for (const std::size_t step : {std::size_t{1}, std::size_t{width_}}) // to the left and right, then up and down
        for (std::size_t place = step; solid_ && place + step < values.size(); place++) {
            const bool within = step > 1 || (place % width_ > 0 && place % width_ + 1 < width_);
            if (within && values[place] == nothing && values[place + step] != nothing)
                values[place] = values[place - step];
        }
}

std::string Pictures::png(const std::vector<float> &values, const RunResult &now) const {
    std::array<real, 2> range{std::numeric_limits<real>::infinity(), -std::numeric_limits<real>::infinity()};
    for (const float value : values)
        if (value != nothing)
            range = {std::min<real>(range[0], value), std::max<real>(range[1], value)};
    range = choice_.range.value_or(range);
    IndexedImage image{.width = width_, .height = height_, .pixels = {}, .palette = backgroundAndViridis()};
    image.pixels.reserve(values.size());
    for (const float value : values) {
        const real share = range[1] > range[0] ? std::clamp((value - range[0]) / (range[1] - range[0]), 0.0, 1.0) : 0.5;
        image.pixels.push_back(static_cast<std::uint8_t>(value == nothing ? 0 : 1 + std::lround(share * 254)));
    }
    return pngOf(image, fmt::format("{} {} (dark) to {} (light), step {}, time {}", pictureFieldName(choice_.field),
                                    range[0], range[1], now.steps, now.time));
}

void Pictures::write(const Solver &solver, const Gas &gas, const RunResult &now) {
    if (stopped_ || now.steps % choice_.every != 0)
        return;
    const double begin = MPI_Wtime();
    std::vector<float> values = gathered(solver, gas);
    try {
        comm_.guarded([&] {
            if (comm_.rank() != 0)
                return;
            fillGaps(values);
            const auto name = fmt::format("picture-{:08}.png", now.steps);
            writeWhole((std::filesystem::path(folder_) / name).string(), png(values, now));
        });
        result_.written++;
    } catch (const DNDS::DataError &error) {
        stopped_ = true;
        if (comm_.rank() == 0)
            DNDS::warn("no more pictures, the run goes on: {}", error.message());
    }
    result_.seconds += MPI_Wtime() - begin;
}

} // namespace Euler
