// Arrays of matrices, batches and adjacencies passed to the transformer of their base type keep the behaviour of the
// derived type.

#include "DerivedCase.hpp"

#include "DNDS/Exchange/FieldCase.hpp"

#include <memory>
#include <type_traits>

namespace DNDS {
namespace {

using namespace DNDS::test;

template <class TArray>
class DerivedArrays : public testing::Test {};
using Derived = testing::Types<
    ArrayEigenVector<3>, ArrayEigenVector<DynamicSize>, ArrayEigenVector<NonUniformSize>,
    ArrayEigenVector<NonUniformSize, DynamicSize>, ArrayEigenMatrix<2, 2>, ArrayEigenMatrix<DynamicSize, 2>,
    ArrayEigenMatrix<DynamicSize, DynamicSize>, ArrayEigenMatrix<NonUniformSize, 2>,
    ArrayEigenMatrix<NonUniformSize, NonUniformSize>, ArrayEigenMatrix<NonUniformSize, NonUniformSize, 3, 3>,
    ArrayEigenMatrix<NonUniformSize, NonUniformSize, DynamicSize, DynamicSize>, ArrayEigenMatrixBatch,
    ArrayEigenUniMatrixBatch<2, 3>, ArrayEigenUniMatrixBatch<DynamicSize, DynamicSize>, ArrayAdjacency<>>;
TYPED_TEST_SUITE(DerivedArrays, Derived);

/// Of ArrayEigenVector, too, the ParArray.
template <class T, rowsize rowSize, rowsize rowMax, int align>
ParArray<T, rowSize, rowMax, align> parArrayOf(const ParArray<T, rowSize, rowMax, align> &);
template <class TArray>
using ParArrayOf = decltype(parArrayOf(std::declval<const TArray &>()));

TYPED_TEST(DerivedArrays, AreExchangedByTheTransformerOfTheirBaseAsByTheirOwn) {
    using Base = ParArrayOf<TypeParam>;
    const auto make = [](const char *name) { return std::make_shared<TypeParam>(name, world()); };
    const auto father = make("father");
    if (ownedRows() > 0) // others take what these chose
        Rows<TypeParam>::give(*father);
    const auto own = make("own son");
    const auto son = make("son");
    ArrayTransformer<TypeParam> ownTransformer;
    ArrayTransformer<Base> transformer;
    const auto prepare = [&](auto &trans, const auto &itsSon) {
        trans.setFatherSon(father, itsSon);
        trans.createFatherGlobalMapping();
        trans.createGhostMapping(wantedRows());
        trans.createMPITypes();
    };
    prepare(ownTransformer, own);
    prepare(transformer, son);
    ASSERT_EQ(son->size(), own->size());
    int round = 1;
    for (const TransportKind kind : allTransports()) {
        SCOPED_TRACE(transportName(kind));
        fillOwned(*father, round++);
        ownTransformer.pullOnce({.transport = kind});
        transformer.pullOnce({.transport = kind});
        EXPECT_EQ(son->hash(), own->hash()) << "shapes and elements";
        transformer.initPersistentPull({.transport = kind});
        fillOwned(*father, round++);
        ownTransformer.pullOnce();
        transformer.startPersistentPull();
        transformer.waitPersistentPull();
        EXPECT_EQ(son->hash(), own->hash());
        for (index i = 0; i < son->size(); ++i)
            EXPECT_EQ(son->rowSize(i), own->rowSize(i));
        // Back, by which nothing changes where ghosts replace the rows they are copies of; batches cannot be added.
        const std::uint64_t before = father->hash();
        transformer.pushOnce(PushOp::Replace, {.transport = kind});
        EXPECT_EQ(father->hash(), before);
        if constexpr (std::is_same_v<TypeParam, ArrayEigenMatrixBatch>) {
            expectContains(messageOnAll<LayoutError>([&] { transformer.pushOnce(PushOp::Sum); }), "Replace");
        } else {
            TypeParam kept(*father);
            ownTransformer.pushOnce(PushOp::Sum, {.transport = kind});
            const std::uint64_t sum = father->hash();
            father->swapData(kept);
            transformer.pushOnce(PushOp::Sum, {.transport = kind});
            EXPECT_EQ(father->hash(), sum);
        }
    }
}

TYPED_TEST(DerivedArrays, WithFathersOfTheBaseAreRefusedOnAllRanks) {
    using Base = ParArrayOf<TypeParam>;
    const auto base = std::make_shared<Base>("plain", world());
    const auto derived = std::make_shared<TypeParam>("derived", world());
    ArrayTransformer<Base> transformer;
    expectContains(messageOnAll<LayoutError>([&] { transformer.setFatherSon(derived, base); }), "of one type");
    expectContains(messageOnAll<LayoutError>([&] { transformer.setFatherSon(base, derived); }), "of one type");
    if (worldSize() > 1) { // each rank is at one with itself, but not with the others
        const auto other = std::make_shared<TypeParam>("derived, too", world());
        const auto plain = std::make_shared<Base>("plain, too", world());
        const bool last = worldRank() == worldSize() - 1;
        expectContains(messageOnAll<LayoutError>([&] {
                           if (last)
                               transformer.setFatherSon(derived, other);
                           else
                               transformer.setFatherSon(base, plain);
                       }),
                       "another type on some rank");
    }
    // A pair copies and swaps its arrays with their declared type.
    ArrayPair<Base> pair;
    pair.father = derived;
    pair.son = std::make_shared<TypeParam>("derived, too", world());
    expectContains(messageOnAll<LayoutError>([&] { pair.transAttach(); }), "declare the pair");
}

} // namespace
} // namespace DNDS
