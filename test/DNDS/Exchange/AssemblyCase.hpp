/// @file AssemblyCase.hpp
/// @brief Ranks that add to their rows and to ghosts, for tests of pushes that sum.
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Exchange/RingField.hpp"

#include <algorithm>

namespace DNDS::test {

/// Every rank adds to its own rows and to its ghosts, as assembly loops do.
template <class Pair>
void assemble(Pair &u) {
    for (auto *array : {u.father.get(), u.son.get()})
        for (index row = 0; row < array->size(); ++row)
            for (rowsize j = 0; j < array->rowSize(row); ++j)
                array->row(row)[static_cast<std::size_t>(j)] +=
                    static_cast<typename Pair::ArrayType::Element>(1 + worldRank() + j);
}

template <class Pair>
std::uint64_t twiceOverNewGhosts() {
    auto u = ringField<Pair>();
    for (int round = 0; round < 2; ++round) {
        u.trans.createMPITypes(); // ghosts are zero
        assemble(u);
        u.trans.pushOnce(PushOp::Sum);
    }
    return u.father->hash();
}

template <class Pair>
bool isZero(const Pair &u) {
    const auto &son = std::as_const(*u.son);
    return std::all_of(son.data(), son.data() + son.dataSize(), [](auto value) { return value == 0; });
}

using AccumulatorField = ArrayPair<ParArray<ExactAccumulator, 2>>;

/// Terms that nearly cancel each other: float64 sums would depend on their order.
inline void addTerms(AccumulatorField &u) {
    for (rowsize j = 0; j < 2; ++j) {
        for (index row = 0; row < u.father->size(); ++row)
            (*u.father)(row, j) += 1e20;
        for (index row = 0; row < u.son->size(); ++row)
            (*u.son)(row, j) += -1e20 + 4e4;
    }
}

/// Fails the test unless owned rows have all terms that ranks added in so many rounds.
inline void expectTermsOfAll(const AccumulatorField &u, int rounds) {
    for (index row = 0; row < u.father->size(); ++row) {
        ExactAccumulator expected;
        for (int round = 0; round < rounds; ++round) {
            expected += 1e20;
            for (const index read : u.trans.pattern()->readers().values)
                if (read == row)
                    expected += -1e20 + 4e4;
        }
        for (rowsize j = 0; j < 2; ++j)
            EXPECT_EQ((*u.father)(row, j).value(), expected.value());
    }
}

} // namespace DNDS::test
