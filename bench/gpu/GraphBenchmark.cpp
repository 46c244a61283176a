// Kernels launched one by one against the same kernels replayed as one graph.

#include "Kernels.hpp"
#include "Setting.hpp"

#include "DNDS/Device/Stream.hpp"
#include "DNDS/Storage/Array.hpp"

#include <fmt/format.h>

#include <utility>

namespace DNDS::Bench {

void benchmarkGraphs(const Setting &setting) {
    setting.say("\nKernel launches against graph replay (microseconds of one pass over all kernels, with the wait)\n");
    Table table({"kernels", "elements", "launched", "replayed", "ratio", "us a kernel"});
    const Device::Stream stream;
    for (const int kernels : {1, 10, 100})
        for (const index elements : {index{1000}, index{100000}}) {
            if (!setting.timeFor(fmt::format("graphs of {} kernels", kernels)))
                continue;
            Array<real, 1> x;
            Array<real, 1> y;
            x.setName("x");
            y.setName("y");
            x.resize(elements);
            y.resize(elements);
            for (index i = 0; i < elements; ++i)
                x(i) = static_cast<real>(i);
            x.toDevice();
            y.toDevice();
            const real *from = std::as_const(x).deviceView<DeviceBackend::CUDA>().data();
            real *to = y.deviceView<DeviceBackend::CUDA>().data();
            int passes = 0;
            const auto all = [&] {
                for (int k = 0; k < kernels; ++k)
                    axpy(1, from, to, elements, stream);
            };
            const auto graph = Device::Graph::capture(stream, all);
            const auto blocks = interleave(setting.comm, setting.sync,
                                           std::vector<Contestant>{{"launched",
                                                                    {},
                                                                    [&] {
                                                                        all();
                                                                        stream.synchronize();
                                                                        ++passes;
                                                                    },
                                                                    {}},
                                                                   {"replayed",
                                                                    {},
                                                                    [&] {
                                                                        graph.launch(stream);
                                                                        stream.synchronize();
                                                                        ++passes;
                                                                    },
                                                                    {}}},
                                           setting.common.plan);
            // Both must have done the same: y = passes * kernels * x, exactly, in whole numbers.
            y.toHost();
            index wrong = 0;
            for (index i = 0; i < elements; ++i)
                wrong += y(i) == static_cast<real>(passes) * kernels * static_cast<real>(i) ? 0 : 1;
            requireNone(setting.comm, wrong, "graph replay");

            const double launched = medianOf(blocks[0]);
            const double replayed = medianOf(blocks[1]);
            for (const bool graphs : {false, true})
                setting.add({{"benchmark", "graph"},
                             {"case", graphs ? "replayed" : "launched"},
                             {"kernels", kernels},
                             {"rows", elements},
                             {"median_us", numberOrNull(graphs ? replayed : launched)},
                             {"us_per_kernel", numberOrNull((graphs ? replayed : launched) / kernels)},
                             {"ratio_to_launches", numberOrNull(graphs ? replayed / launched : 1)}});
            table.add({fmt::to_string(kernels), fmt::to_string(elements), numberOrDash(launched),
                       numberOrDash(replayed), numberOrDash(replayed / launched), numberOrDash(replayed / kernels)});
        }
    setting.say(table.text());
}

} // namespace DNDS::Bench
