// Kernels of a thread a row whose rows are read in place, against the same with rows moved through shared memory.

#include "Kernels.hpp"
#include "Setting.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Storage/Array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace DNDS::Bench {

namespace {

constexpr real factor = 0.5;

/// Small whole numbers, so that any order of sums is exact.
real contents(index element) { return static_cast<real>((element * 7919) % 1009); }

/// The four neighbours of each cell of a grid of rows of 4096 cells, numbered in order, or shuffled within groups of
/// 1024 as in an unstructured mesh.
std::vector<LocalIndex> neighboursOf(index count, bool shuffled) {
    constexpr index group = 1024;
    const index line = std::min<index>(4096, std::max<index>(count / 4, 1));
    std::vector<index> number(toSize(count));
    std::iota(number.begin(), number.end(), index{0});
    if (shuffled) {
        std::mt19937_64 random(1);
        for (index first = 0; first < count; first += group)
            std::shuffle(number.begin() + first, number.begin() + std::min(first + group, count), random);
    }
    std::vector<LocalIndex> neighbours(4 * toSize(count));
    for (index cell = 0; cell < count; ++cell) {
        const index around[] = {cell - line, cell - 1, cell + 1, cell + line}; // NOLINT
        for (std::size_t n = 0; n < 4; ++n)
            neighbours[4 * toSize(number[toSize(cell)]) + n] =
                static_cast<LocalIndex>(number[toSize((around[n] + count) % count)]);
    }
    return neighbours;
}

struct Fields {
    Array<real, 1> x, y;
    const real *from = nullptr;
    real *to = nullptr;

    explicit Fields(index elements) {
        x.setName("x");
        y.setName("y");
        x.resize(elements);
        y.resize(elements);
        for (index i = 0; i < elements; ++i)
            x(i) = contents(i);
        reset();
    }
    void reset() {
        y.toHost(); // of what is thrown away only the state
        std::fill(y.data(), y.data() + y.size(), 0);
        x.toDevice();
        y.toDevice();
        from = std::as_const(x).deviceView<DeviceBackend::CUDA>().data();
        to = y.deviceView<DeviceBackend::CUDA>().data();
    }
};

struct Case {
    std::string name;
    double bytesPerRow; ///< read and written at least
    std::function<void(OwnRows, const Fields &)> launch;
    std::function<real(index row, int element)> expected; ///< after one launch
};

void benchmarkCase(const Setting &setting, const Device::Stream &stream, const Case &which, int width, index count,
                   Fields &fields, Table &table) {
    const auto check = [&](OwnRows how) {
        fields.reset();
        which.launch(how, fields);
        fields.y.toHost(stream);
        stream.synchronize();
        index wrong = 0;
        for (index row = 0; row < count; ++row)
            for (int k = 0; k < width; ++k)
                wrong += fields.y(row * width + k) == which.expected(row, k) ? 0 : 1;
        requireNone(setting.comm, wrong, which.name);
        fields.reset();
    };
    check(OwnRows::InPlace);
    check(OwnRows::ThroughSharedMemory);
    const auto bytes = static_cast<std::size_t>(which.bytesPerRow * static_cast<double>(count) / 2);
    HostDeviceBuffer copyFrom(bytes);
    HostDeviceBuffer copyTo(bytes);
    copyFrom.toDevice();
    copyTo.toDevice();
    const std::byte *source = copyFrom.read(MemorySpace::Device, "source of a copy");
    std::byte *target = copyTo.write(MemorySpace::Device, "target of a copy");

    const int batch = setting.common.quick ? 1 : 8;
    const auto timed = [&](const std::function<void()> &launch) {
        return [&stream, launch, batch] {
            for (int b = 0; b < batch; ++b)
                launch();
            stream.synchronize();
        };
    };
    const std::vector<Contestant> contestants{
        {"in place", {}, timed([&] { which.launch(OwnRows::InPlace, fields); }), {}},
        {"shared memory", {}, timed([&] { which.launch(OwnRows::ThroughSharedMemory, fields); }), {}},
        {"copy",
         {},
         timed([&] { Device::copy(target, MemorySpace::Device, source, MemorySpace::Device, bytes, stream); }),
         {}}};
    const auto blocks = interleave(setting.comm, setting.sync, contestants, setting.common.plan);
    std::vector<double> times;
    for (const auto &turns : blocks)
        times.push_back(medianOf(turns) / batch);
    for (std::size_t k = 0; k < 2; ++k)
        setting.add({{"benchmark", "rows"},
                     {"case", which.name},
                     {"own_rows", contestants[k].name},
                     {"rows", count},
                     {"doubles_per_row", width},
                     {"median_us", numberOrNull(times[k])},
                     {"gb_per_s", numberOrNull(static_cast<double>(2 * bytes) / times[k] / 1e3)},
                     {"ratio_to_in_place", numberOrNull(times[k] / times[0])},
                     {"fraction_of_copy", numberOrNull(times[2] / times[k])}});
    table.add({which.name, fmt::to_string(width), numberOrDash(times[0]), numberOrDash(times[1]),
               numberOrDash(times[0] / times[1]), numberOrDash(times[2] / times[0]),
               numberOrDash(times[2] / times[1])});
}

} // namespace

void benchmarkRows(const Setting &setting) {
    const Device::Stream stream;
    const index count = setting.common.quick ? 3000 : 8000000;
    Table table({"own rows (microseconds a launch)", "doubles", "in place", "shared memory", "times faster",
                 "of a copy", "of a copy, shared"});
    for (const int width : {3, 5, 8}) {
        if (!setting.timeFor(fmt::format("own rows of {} doubles", width)))
            continue;
        Fields fields(count * width);
        const double rowBytes = 8.0 * width;
        const Case sweep{
            "sweep", 3 * rowBytes,
            [&](OwnRows how, const Fields &f) { sweepRows(how, width, factor, f.from, f.to, count, stream); },
            [&](index row, int k) { return factor * contents(row * width + k); }};
        benchmarkCase(setting, stream, sweep, width, count, fields, table);
        for (const bool shuffled : {false, true}) {
            const std::vector<LocalIndex> list = neighboursOf(count, shuffled);
            Array<LocalIndex, 1> neighbours;
            neighbours.setName("neighbours");
            neighbours.resize(4 * count);
            std::copy(list.begin(), list.end(), neighbours.data());
            neighbours.toDevice();
            const LocalIndex *numbers = std::as_const(neighbours).deviceView<DeviceBackend::CUDA>().data();
            const Case around{shuffled ? "four neighbours, shuffled" : "four neighbours, in order", 2 * rowBytes + 16,
                              [&, numbers](OwnRows how, const Fields &f) {
                                  sumNeighbours(how, width, numbers, f.from, f.to, count, stream);
                              },
                              [&](index row, int k) {
                                  real sum = 0;
                                  for (index n = 0; n < 4; ++n)
                                      sum += contents(index{list[toSize(4 * row + n)]} * width + k) -
                                             contents(row * width + k);
                                  return sum;
                              }};
            benchmarkCase(setting, stream, around, width, count, fields, table);
        }
    }
    setting.say(table.text());
}

} // namespace DNDS::Bench
