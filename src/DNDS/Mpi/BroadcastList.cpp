#include "DNDS/Mpi/Communicator.hpp"

namespace DNDS {

/// Two lists, lengths and characters, so that the number of collectives does not depend on the number of strings.
void broadcastStrings(const CommunicatorView &comm, std::vector<std::string> &strings) {
    std::vector<std::size_t> lengths;
    std::vector<char> text;
    comm.guarded([&] {
        for (const std::string &string : strings) {
            lengths.push_back(string.size());
            text.insert(text.end(), string.begin(), string.end());
        }
    });
    broadcastList(comm, lengths);
    broadcastList(comm, text);
    comm.guarded([&] {
        strings.clear();
        auto at = text.begin();
        for (const std::size_t length : lengths) {
            strings.emplace_back(at, at + static_cast<std::ptrdiff_t>(length));
            at += static_cast<std::ptrdiff_t>(length);
        }
    });
}

} // namespace DNDS
