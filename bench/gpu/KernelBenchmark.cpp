// The kernel that packs rows for peers, beside simpler ones, the device's own copies and an empty launch.

#include "Kernels.hpp"
#include "Setting.hpp"

#include "DNDS/Storage/Array.hpp"
#include "DNDS/Transport/DeviceRowCopy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace DNDS::Bench {

namespace {

constexpr std::size_t mebi = std::size_t{1} << 20U;

real contents(index source, index element) { return static_cast<real>((element * 7 + source * 13) % 1000003); }

/// Several arrays to gather from and to, used in turn, so that a gather finds little of its rows in the device's cache.
struct Ring {
    std::vector<Array<real, 1>> sources;
    std::vector<Array<real, 1>> targets;
    std::vector<const real *> from;
    std::vector<real *> to;

    Ring(std::size_t count, index sourceElements, index targetElements) : sources(count), targets(count) {
        for (std::size_t k = 0; k < count; ++k) {
            sources[k].setName("source");
            targets[k].setName("target");
            sources[k].resize(sourceElements);
            targets[k].resize(targetElements);
            const auto view = sources[k].view();
            for (index i = 0; i < sourceElements; ++i)
                view(i) = contents(static_cast<index>(k), i);
            sources[k].toDevice();
            targets[k].toDevice();
            from.push_back(std::as_const(sources[k]).deviceView<DeviceBackend::CUDA>().data());
            to.push_back(targets[k].deviceView<DeviceBackend::CUDA>().data());
        }
    }

    /// Elements of all targets that are not the chosen rows' of their source; the targets are cleared for the next.
    index wrongElements(const std::vector<index> &rows, int width) {
        index wrong = 0;
        for (std::size_t k = 0; k < targets.size(); ++k) {
            targets[k].toHost();
            const auto view = targets[k].view();
            for (std::size_t r = 0; r < rows.size(); ++r)
                for (int c = 0; c < width; ++c) {
                    real &value = view(static_cast<index>(r) * width + c);
                    wrong += value == contents(static_cast<index>(k), rows[r] * width + c) ? 0 : 1;
                    value = -1;
                }
            targets[k].toDevice();
            to[k] = targets[k].deviceView<DeviceBackend::CUDA>().data();
        }
        return wrong;
    }
};

/// GB/s of bytes read and written by a large copy within the device.
double copyRate(const Setting &setting, const Device::Stream &stream) {
    const std::size_t bytes = setting.common.quick ? 4 * mebi : 1024 * mebi;
    HostDeviceBuffer from(bytes);
    HostDeviceBuffer to(bytes);
    from.toDevice();
    to.toDevice();
    const std::byte *source = from.read(MemorySpace::Device, "source of a copy");
    std::byte *target = to.write(MemorySpace::Device, "target of a copy");
    const auto blocks = interleave(setting.comm, setting.sync,
                                   std::vector<Contestant>{{"copy",
                                                            {},
                                                            [&] {
                                                                for (int k = 0; k < 4; ++k)
                                                                    Device::copy(target, MemorySpace::Device, source,
                                                                                 MemorySpace::Device, bytes, stream);
                                                                stream.synchronize();
                                                            },
                                                            {}}},
                                   setting.common.plan);
    const double rate = 4 * 2 * static_cast<double>(bytes) / medianOf(blocks[0]) / 1e3;
    setting.add({{"benchmark", "copy"}, {"case", fmt::format("{} MiB", bytes / mebi)}, {"copy_rate_gb_s", rate}});
    setting.say(fmt::format("\nThe device's own copy: {} GB/s, bytes read and written, {} MiB\n", numberOrDash(rate, 4),
                            bytes / mebi));
    return rate;
}

struct Case {
    index rows;
    int width;
    std::string order;
};

/// What the times of one case are compared with.
struct Comparison {
    std::string name;  ///< of the case, in the table
    double rate;       ///< of the device's own copy, GB/s
    double moved;      ///< bytes read and written
    std::size_t turns; ///< arrays in turn
};

/// Adds one row for each kernel of `names`; `times` are theirs, then that of the copy and that of an empty kernel.
void addRows(const Setting &setting, const Case &which, const std::vector<std::string> &names,
             const std::vector<double> &times, const Comparison &with, Table &table) {
    const double copy = times[names.size()];
    const double launch = times[names.size() + 1];
    const double floor = std::max(launch, with.moved / with.rate / 1e3);
    for (std::size_t k = 0; k < names.size(); ++k) {
        setting.add({{"benchmark", "kernel"},
                     {"kernel", names[k]},
                     {"rows", which.rows},
                     {"doubles_per_row", which.width},
                     {"order", which.order},
                     {"median_us", numberOrNull(times[k])},
                     {"launch_us", numberOrNull(launch)},
                     {"above_launch_us", numberOrNull(times[k] - launch)},
                     {"floor_us", numberOrNull(floor)},
                     {"fraction_of_floor", numberOrNull(floor / times[k])},
                     {"fraction_of_copy", numberOrNull(copy / times[k])},
                     {"gb_per_s", numberOrNull(with.moved / times[k] / 1e3)},
                     {"bytes_moved", with.moved},
                     {"arrays_in_turn", with.turns}});
        table.add({with.name, names[k], numberOrDash(times[k]), numberOrDash(times[k] - launch),
                   numberOrDash(floor / times[k]), numberOrDash(copy / times[k])});
    }
}

void benchmarkCase(const Setting &setting, const Device::Stream &stream, const Case &which, double rate, Table &table) {
    const index among = 4 * which.rows;
    const std::vector<index> rows = chosenRows(which.rows, among, which.order);
    const std::size_t rowBytes = static_cast<std::size_t>(which.width) * sizeof(real);
    const double moved = bytesMoved(rows, rowBytes);
    const std::size_t footprint = static_cast<std::size_t>(among + which.rows) * rowBytes;
    const std::size_t wanted = setting.common.quick ? mebi : 512 * mebi;
    Ring ring(std::clamp<std::size_t>(wanted / footprint, 2, 16), among * which.width, which.rows * which.width);
    const std::size_t turns = ring.from.size();

    Array<LocalIndex, 1> list;
    list.setName("rows");
    list.resize(which.rows);
    std::transform(rows.begin(), rows.end(), list.data(), [](index row) { return static_cast<LocalIndex>(row); });
    list.toDevice();
    const LocalIndex *numbers = std::as_const(list).deviceView<DeviceBackend::CUDA>().data();

    RowPart part;
    part.stride = rowBytes;
    std::vector<DeviceRowCopy> packs(turns);
    for (std::size_t k = 0; k < turns; ++k) {
        packs[k].addGather(RowGather(rows, part));
        packs[k].point(0, reinterpret_cast<const std::byte *>(ring.from[k]), reinterpret_cast<std::byte *>(ring.to[k]));
    }
    // Half of the bytes that a gather moves are read by this copy, half are written.
    const auto copyBytes = static_cast<std::size_t>(moved / 2);
    HostDeviceBuffer copyFrom(copyBytes);
    HostDeviceBuffer copyTo(copyBytes);
    copyFrom.toDevice();
    copyTo.toDevice();
    const std::byte *copySource = copyFrom.read(MemorySpace::Device, "source of a copy");
    std::byte *copyTarget = copyTo.write(MemorySpace::Device, "target of a copy");

    const std::vector<std::pair<std::string, std::function<void(std::size_t)>>> kernels{
        {"pack", [&](std::size_t k) { packs[k].launch(stream); }},
        {"thread a row",
         [&](std::size_t k) { threadPerRow(ring.from[k], numbers, ring.to[k], which.rows, which.width, stream); }},
        {"thread an element",
         [&](std::size_t k) { threadPerElement(ring.from[k], numbers, ring.to[k], which.rows, which.width, stream); }},
        {"copy of as many bytes",
         [&](std::size_t) {
             Device::copy(copyTarget, MemorySpace::Device, copySource, MemorySpace::Device, copyBytes, stream);
         }},
        {"empty kernel", [&](std::size_t) { emptyKernel(stream); }}};
    const std::string name = fmt::format("{} rows of {} doubles, {}", which.rows, which.width, which.order);

    // One timed part is many launches and one wait, so that the wait's own time is divided by their number.
    const int batch = static_cast<int>((setting.common.quick ? 1 : std::clamp<std::size_t>(64 / turns, 1, 32)) * turns);
    std::vector<Contestant> contestants;
    for (const auto &[kernel, launch] : kernels)
        contestants.push_back({kernel,
                               {},
                               [&stream, &launch = launch, batch, turns] {
                                   for (int b = 0; b < batch; ++b)
                                       launch(static_cast<std::size_t>(b) % turns);
                                   stream.synchronize();
                               },
                               {}});
    const auto check = [&] {
        for (std::size_t k = 0; k < 3; ++k) {
            contestants[k].timed();
            requireNone(setting.comm, ring.wrongElements(rows, which.width), kernels[k].first + ", " + name);
            for (std::size_t turn = 0; turn < turns; ++turn)
                packs[turn].point(0, reinterpret_cast<const std::byte *>(ring.from[turn]),
                                  reinterpret_cast<std::byte *>(ring.to[turn]));
        }
    };
    check();
    const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.common.plan);
    check();

    std::vector<double> times;
    for (const auto &turnsOfOne : blocks)
        times.push_back(medianOf(turnsOfOne) / batch);
    std::vector<std::string> names;
    for (std::size_t k = 0; k < 3; ++k)
        names.push_back(kernels[k].first);
    addRows(setting, which, names, times, {.name = name, .rate = rate, .moved = moved, .turns = turns}, table);
}

} // namespace

void benchmarkKernels(const Setting &setting) {
    const Device::Stream stream;
    const double rate = copyRate(setting, stream);
    Table table({"kernels (microseconds a launch)", "", "time", "above launch", "of the floor", "of a copy"});
    for (const index rows : setting.rows)
        for (const int width : setting.widths)
            for (const char *order : {"scattered", "runs"}) {
                const Case which{rows, width, order};
                if (setting.timeFor(fmt::format("kernels, {} rows of {} doubles, {}", rows, width, order)))
                    benchmarkCase(setting, stream, which, rate, table);
            }
    setting.say(table.text());
}

} // namespace DNDS::Bench
