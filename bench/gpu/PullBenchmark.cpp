// Pulls of rows in device memory by each transport, against copying whole arrays to the host and back.

#include "Setting.hpp"

#include "DNDS/Base/Error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

namespace DNDS::Bench {

namespace {

using Field = ArrayPair<ParArray<real, DynamicSize>>;

real contents(index globalRow, rowsize k, int version) {
    return static_cast<real>((globalRow * 31 + k * 7 + version) % 1000003);
}

/// A rank's cells such that so many ghosts would be the surface of their block, within what memory allows.
index ownedRows(index ghosts, int width) {
    const auto block = static_cast<index>(std::pow(static_cast<double>(ghosts) / 6, 1.5));
    const index atMost = (index{1} << 29) / (width * index{sizeof(real)});
    return std::max(2 * ghosts, std::min(block, atMost));
}

void fillFather(Field &field, int version) {
    field.toHost();
    const index first = field.father->globalMapping()->localBegin();
    const auto view = field.father->view();
    for (index row = 0; row < view.size(); ++row)
        for (rowsize k = 0; k < view.rowSize(); ++k)
            view(row, k) = contents(first + row, k, version);
    const auto ghosts = field.son->view();
    std::fill_n(ghosts.data(), ghosts.size() * ghosts.rowSize(), real{-1});
    field.toDevice();
}

index wrongGhosts(Field &field, int version) {
    field.toHost();
    index wrong = 0;
    const auto view = std::as_const(*field.son).view();
    const GhostMapping &mapping = *field.trans.ghostMapping();
    for (index row = 0; row < view.size(); ++row)
        for (rowsize k = 0; k < view.rowSize(); ++k)
            wrong += view(row, k) == contents(mapping.ghosts()[static_cast<std::size_t>(row)], k, version) ? 0 : 1;
    return wrong;
}

/// A way of pulling, with a field of its own.
struct Way {
    std::string name;
    std::unique_ptr<Field> field;
};

/// The transport's pulls, or null with the reason where it cannot be used here.
std::unique_ptr<Field> prepare(const Setting &setting, const Field &model, const std::string &transport,
                               ExchangeSpace space, std::string &reason) {
    auto field = std::make_unique<Field>();
    field->initPair("field", setting.comm);
    field->father->resize(model.father->size(), model.father->rowSize(0));
    field->transAttach();
    field->trans.borrowGGIndexing(model.trans);
    field->trans.createMPITypes();
    field->toDevice();
    try {
        field->trans.initPersistentPull({transportFromName(transport), space}); // fails on all ranks alike
        return field;
    } catch (const Error &error) {
        reason = error.what();
        return nullptr;
    }
}

void benchmarkCase(const Setting &setting, const std::vector<std::string> &transports, index ghosts, int width,
                   Table &table) {
    const Device::Stream stream;
    const CommunicatorView comm = setting.comm;
    const index owned = ownedRows(ghosts, width);
    const std::string name = fmt::format("{} rows of {} doubles", ghosts, width);

    // Each rank reads scattered rows of every other, equally many.
    Field model;
    model.initPair("model", comm);
    model.father->resize(owned, width);
    model.transAttach();
    model.trans.createFatherGlobalMapping();
    std::vector<index> pull;
    const index share = ghosts / (comm.size() - 1);
    for (int rank = 0; rank < comm.size(); ++rank)
        if (rank != comm.rank())
            for (const index row : chosenRows(share, owned, "scattered"))
                pull.push_back(rank * owned + row);
    model.trans.createGhostMapping(pull);
    model.trans.createMPITypes();

    std::vector<Way> ways;
    std::string reason;
    for (const std::string &transport : transports) {
        auto field = prepare(setting, model, transport, ExchangeSpace::Device, reason);
        DNDS_CHECK(field != nullptr, StateError, "{} refuses {}: {}", transport, name, reason);
        ways.push_back({transport, std::move(field)});
    }
    ways.push_back({"full copies", prepare(setting, model, "auto", ExchangeSpace::Host, reason)});
    DNDS_CHECK(ways.back().field != nullptr, StateError, "no pull on the host: {}", reason);

    std::vector<Contestant> contestants;
    for (Way &way : ways) {
        Field &field = *way.field;
        if (way.name == "full copies") // as a program does that was made for hosts: the device has written its cells
            contestants.push_back({way.name,
                                   [&] { (void)field.father->deviceView<DeviceBackend::CUDA>(); },
                                   [&] {
                                       field.toHost();
                                       field.trans.startPersistentPull();
                                       field.trans.waitPersistentPull();
                                       field.toDevice();
                                   },
                                   {}});
        else
            contestants.push_back({way.name,
                                   {},
                                   [&] {
                                       field.trans.startPersistentPull(stream);
                                       field.trans.waitPersistentPull(stream);
                                       stream.synchronize();
                                   },
                                   {}});
    }
    const auto check = [&](int version) {
        for (std::size_t k = 0; k < ways.size(); ++k) {
            fillFather(*ways[k].field, version);
            if (contestants[k].prepare)
                contestants[k].prepare();
            contestants[k].timed();
            requireNone(comm, wrongGhosts(*ways[k].field, version), ways[k].name + ", " + name);
            ways[k].field->toDevice();
        }
    };
    check(1);
    const auto blocks = interleave(comm, setting.sync, contestants, setting.common.plan);
    check(2);

    std::map<std::string, double> times;
    for (std::size_t k = 0; k < ways.size(); ++k)
        times[ways[k].name] = medianOf(blocks[k]);
    const double bytes = static_cast<double>(share * (comm.size() - 1)) * width * sizeof(real);
    const double staged = times.contains("staged") ? times["staged"] : NotMeasured;
    for (const Way &way : ways) {
        const double time = times[way.name];
        setting.add({{"benchmark", "pull"},
                     {"transport", way.name},
                     {"rows", ghosts},
                     {"doubles_per_row", width},
                     {"median_us", numberOrNull(time)},
                     {"gb_per_s", numberOrNull(bytes / time / 1e3)},
                     {"ratio_to_staged", numberOrNull(time / staged)},
                     {"ratio_to_full_copies", numberOrNull(time / times["full copies"])},
                     {"owned_rows", owned}});
        table.add({name, way.name, numberOrDash(time), numberOrDash(bytes / time / 1e3), numberOrDash(time / staged),
                   numberOrDash(time / times["full copies"])});
    }
}

/// The transports that work here, found with a few rows.
std::vector<std::string> usableTransports(const Setting &setting) {
    Field field;
    field.initPair("trial", setting.comm);
    field.father->resize(4, 1);
    field.transAttach();
    field.trans.createFatherGlobalMapping();
    const index other = (setting.comm.rank() + 1) % setting.comm.size();
    field.trans.createGhostMapping(std::vector<index>{4 * other + 1});
    field.trans.createMPITypes();
    std::vector<std::string> usable;
    std::string reason;
    for (const std::string &transport : setting.transports)
        if (prepare(setting, field, transport, ExchangeSpace::Device, reason))
            usable.push_back(transport);
        else
            setting.say(fmt::format("{} is not used here: {}\n", transport, reason));
    return usable;
}

} // namespace

void benchmarkPulls(const Setting &setting) {
    setting.say(
        fmt::format("\nPulls by {} ranks; each repetition ends when the device has its ghosts\n", setting.comm.size()));
    const std::vector<std::string> transports = usableTransports(setting);
    Table table({"pulls", "transport", "us", "GB/s a rank", "to staged", "to full copies"});
    for (const index rows : setting.rows)
        for (const int width : setting.widths)
            if (setting.timeFor(fmt::format("pulls of {} rows of {} doubles", rows, width)))
                benchmarkCase(setting, transports, rows, width, table);
    setting.say(table.text());
}

} // namespace DNDS::Bench
