public import Foundation

/// Where the SDK keeps what is secret, in place of its own files: a host gives one to `SdkConfiguration`. It is called
/// from one queue of the SDK, one call at a time, and may take its time.
public protocol StorageCallbackProtocol: AnyObject {
  /// Keeps the data under this name, in place of what was there before, and safely: once it has returned, a loss of power
  /// must not bring back the old. Empty data means that nothing is to be kept.
  func storeData(storageId: String, data: Data) throws
  /// What is kept under this name; nil: nothing.
  func retrieveData(storageId: String) throws -> Data?
}
