#include "DNDS/Mpi/Rendezvous.hpp"

namespace DNDS {

RankLists Outbox::take() {
    RankLists lists;
    for (const auto &[rank, values] : lists_)
        lists.append(rank, values);
    lists_.clear();
    return lists;
}

} // namespace DNDS
