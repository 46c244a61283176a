#include "DNDS/Exchange/PathReport.hpp"

#include "DNDS/Base/Error.hpp"

#include <utility>

namespace DNDS {

std::vector<PeerPath> pathsOf(const ExchangePattern &pattern, Direction direction, const MessagePlan &plan,
                              const std::map<int, TransportChoice> &choices) {
    std::map<int, PeerPath> paths;
    const auto pathOf = [&](int peer) -> PeerPath & {
        const auto [found, isNew] = paths.try_emplace(peer);
        if (isNew) {
            const TransportChoice &choice = choices.at(peer);
            found->second.peer = peer;
            found->second.transport = choice.kind;
            found->second.name = choice.name;
            found->second.why = choice.why;
        }
        return found->second;
    };
    const bool pull = direction == Direction::Pull;
    const auto rowsOf = [](const PeerRows &lists, std::size_t k) { return lists.starts[k + 1] - lists.starts[k]; };
    for (std::size_t k = 0; k < pattern.readers().size(); ++k) {
        PeerPath &path = pathOf(pattern.readers().ranks[k]);
        (pull ? path.rowsSent : path.rowsReceived) = rowsOf(pattern.readers(), k);
    }
    for (std::size_t k = 0; k < pattern.owners().size(); ++k) {
        PeerPath &path = pathOf(pattern.owners().ranks[k]);
        (pull ? path.rowsReceived : path.rowsSent) = rowsOf(pattern.owners(), k);
    }
    for (const Outgoing &outgoing : plan.outgoing)
        pathOf(outgoing.peer).bytesSent = outgoing.bytes;
    for (const Incoming &incoming : plan.incoming)
        pathOf(incoming.peer).bytesReceived = incoming.bytes;
    std::vector<PeerPath> list;
    for (auto &[peer, path] : paths)
        list.push_back(std::move(path));
    return list;
}

std::string pathTable(const std::string &title, const std::vector<PeerPath> &paths) {
    std::string text = title + "\n";
    text += fmt::format("  {:>6}  {:<12} {:>10} {:>12} {:>10} {:>12}  {}\n", "peer", "path", "rows out", "bytes out",
                        "rows in", "bytes in", "why");
    for (const PeerPath &path : paths)
        text += fmt::format("  {:>6}  {:<12} {:>10} {:>12} {:>10} {:>12}  {}\n", path.peer, path.name, path.rowsSent,
                            path.bytesSent, path.rowsReceived, path.bytesReceived, path.why);
    return text;
}

} // namespace DNDS
