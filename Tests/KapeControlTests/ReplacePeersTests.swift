import KapeCrypto
import KapeProtocols
import Testing

@testable import KapeControl

/// `replace_peers=true` begins without any peer, as wireguard-go has it; peers that stay keep their sessions all the
/// same, because they are not taken away in between.
@Suite struct ReplacePeersTests {
  private let a = PrivateKey().publicKey
  private let b = PrivateKey().publicKey

  private func reset(_ peers: [WireGuardPeerChange]) -> [WireGuardPeerChange] {
    var change = WireGuardInterfaceChange()
    change.replacePeers = true
    change.peers = peers
    return change.resettingPeers().peers
  }

  @Test func whatAPeerIsNotGivenItLoses() {
    let result = reset([WireGuardPeerChange(publicKey: a)])
    #expect(result.count == 1)
    #expect(result[0].presharedKey?.isZero == true)
    #expect(result[0].persistentKeepalive == 0)
    #expect(result[0].replaceAllowedIPs)
    #expect(!result[0].remove)
  }

  @Test func whatItIsGivenItKeeps() {
    var peer = WireGuardPeerChange(publicKey: a)
    peer.presharedKey = PresharedKey()
    peer.persistentKeepalive = 25
    let result = reset([peer])
    #expect(result[0].presharedKey == peer.presharedKey)
    #expect(result[0].persistentKeepalive == 25)
  }

  @Test func theSecondMentionOfAPeerAddsToTheFirst() {
    var second = WireGuardPeerChange(publicKey: a)
    second.persistentKeepalive = 7
    let result = reset([WireGuardPeerChange(publicKey: a), second])
    #expect(result[1] == second)
  }

  @Test func onlyUpdatingAPeerThatIsNotThereDoesNothing() {
    var update = WireGuardPeerChange(publicKey: a)
    update.updateOnly = true
    #expect(reset([update]).isEmpty)
    let afterIt = reset([WireGuardPeerChange(publicKey: a), update])
    #expect(afterIt.count == 2)
    let ofAnother = reset([WireGuardPeerChange(publicKey: b), update])
    #expect(ofAnother.map(\.publicKey) == [b])
  }

  @Test func aPeerThatWasRemovedAndComesAgainBeginsAnew() {
    var removal = WireGuardPeerChange(publicKey: a)
    removal.remove = true
    let result = reset([WireGuardPeerChange(publicKey: a), removal, WireGuardPeerChange(publicKey: a)])
    #expect(result.count == 3)
    #expect(result[2].presharedKey?.isZero == true)
  }
}
