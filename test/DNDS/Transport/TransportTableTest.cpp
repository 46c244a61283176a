// Choice of a transport: by the caller, by the environment, by default.

#include "DNDS/Transport/TransportTable.hpp"

#include "DNDS/Exchange/RingField.hpp"
#include "support/ScopedVariable.hpp"

#include <string>

namespace DNDS {
namespace {

using namespace DNDS::test;

TEST(TransportNames, GoBothWays) {
    for (const TransportKind kind : {TransportKind::Auto, TransportKind::Datatype, TransportKind::Packed,
                                     TransportKind::NodeShared, TransportKind::Local})
        EXPECT_EQ(transportFromName(transportName(kind)), kind);
    EXPECT_EQ(transportFromName("datatype"), TransportKind::Datatype);
    for (const char *wrong : {"", "Packed", "pack", "packed "}) {
        const std::string text = messageOf<ArgumentError>([&] { (void)transportFromName(wrong); });
        for (const char *name : {"auto", "datatype", "packed", "node-shared"})
            expectContains(text, name);
        expectContains(text, fmt::format("'{}'", wrong));
    }
}

void expectPaths(RealField &u, const ExchangeOptions &options, TransportKind kind, const std::string &why) {
    u.trans.initPersistentPull(options);
    for (const PeerPath &path : u.trans.pullPaths()) {
        EXPECT_EQ(path.transport, path.peer == worldRank() ? TransportKind::Local : kind);
        if (path.peer != worldRank())
            expectContains(path.why, why);
    }
    expectPullWorks(u, 1);
}

TEST(TransportChoice, FollowsTheEnvironmentAndTheCallerBeforeIt) {
    RealField u = ringField();
    {
        const ScopedVariable set("DNDS_TRANSPORT", "datatype");
        expectPaths(u, {}, TransportKind::Datatype, "DNDS_TRANSPORT");
        expectPaths(u, {.transport = TransportKind::Packed}, TransportKind::Packed, "caller");
    }
    const ScopedVariable set("DNDS_TRANSPORT", "packed");
    expectPaths(u, {}, TransportKind::Packed, "DNDS_TRANSPORT");
}

TEST(TransportChoice, AutoInTheEnvironmentIsAsIfItWereNotSet) {
    RealField u = ringField();
    u.trans.initPersistentPull();
    const auto usual = u.trans.pullPaths();
    const ScopedVariable set("DNDS_TRANSPORT", "auto");
    u.trans.initPersistentPull();
    const auto asked = u.trans.pullPaths();
    ASSERT_EQ(asked.size(), usual.size());
    for (std::size_t k = 0; k < asked.size(); ++k)
        EXPECT_EQ(asked[k].transport, usual[k].transport);
    expectPullWorks(u, 1);
}

TEST(TransportChoice, AWrongNameInTheEnvironmentOfOneRankThrowsOnAll) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    RealField u = ringField();
    for (int bad = 0; bad < worldSize(); ++bad) {
        const ScopedVariable set("DNDS_TRANSPORT", worldRank() == bad ? "carrier pigeon" : "auto");
        const std::string text = messageOnAll<ArgumentError>([&] { u.trans.initPersistentPull(); });
        expectContains(text, "carrier pigeon");
        for (const char *name : {"auto", "datatype", "packed", "node-shared"})
            expectContains(text, name);
        expectContains(text, "(rank " + std::to_string(bad));
        messageOnAll<ArgumentError>([&] { u.trans.pushOnce(); });
    }
    u.trans.initPersistentPull();
    expectPullWorks(u, 1);
}

TEST(TransportChoice, DifferentNamesInTheEnvironmentsThrowOnAll) {
    if (worldSize() < 2)
        GTEST_SKIP() << "needs two ranks";
    RealField u = ringField();
    const ScopedVariable set("DNDS_TRANSPORT", worldRank() == 0 ? "packed" : "datatype");
    expectContains(messageOnAll<ArgumentError>([&] { u.trans.initPersistentPull(); }), "DNDS_TRANSPORT");
}

} // namespace
} // namespace DNDS
