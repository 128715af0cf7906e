extension Publisher where Failure == Never {
  /// The values as an asynchronous sequence. Each is asked for when the loop wants it: between two, a subject's values pass
  /// by, and of a value that is held the newest comes next.
  public var values: AsyncPublisher<Self> { AsyncPublisher(self) }
}

extension Publisher {
  /// The values as an asynchronous sequence, which throws the failure. Each is asked for when the loop wants it.
  public var values: AsyncThrowingPublisher<Self> { AsyncThrowingPublisher(self) }
}

/// What a publisher gives, as an asynchronous sequence.
public struct AsyncPublisher<P: Publisher>: AsyncSequence where P.Failure == Never {
  public typealias Element = P.Output
  public typealias Failure = Never

  private let publisher: P

  public init(_ publisher: P) {
    self.publisher = publisher
  }

  public func makeAsyncIterator() -> Iterator {
    Iterator(puller: Puller(publisher))
  }

  public struct Iterator: AsyncIteratorProtocol {
    let puller: Puller<P.Output, Never>

    public mutating func next() async -> P.Output? {
      await puller.next(isolation: nil).value
    }

    public mutating func next(isolation actor: isolated (any Actor)?) async -> P.Output? {
      await puller.next(isolation: actor).value
    }
  }
}

/// What a publisher gives, as an asynchronous sequence that throws its failure.
public struct AsyncThrowingPublisher<P: Publisher>: AsyncSequence {
  public typealias Element = P.Output

  private let publisher: P

  public init(_ publisher: P) {
    self.publisher = publisher
  }

  public func makeAsyncIterator() -> Iterator {
    Iterator(puller: Puller(publisher))
  }

  public struct Iterator: AsyncIteratorProtocol {
    let puller: Puller<P.Output, P.Failure>

    public mutating func next() async throws -> P.Output? {
      try await puller.next(isolation: nil).get()
    }

    public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> P.Output? {
      try await puller.next(isolation: actor).get()
    }
  }
}
