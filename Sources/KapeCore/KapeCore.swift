// The declarations of the SDK's core, each by its name: nothing else of ours comes along.

@_exported import Foundation

@_exported import struct KapePlatform.EventCategory
@_exported import enum KapePlatform.KapeBillingPeriod
@_exported import enum KapePlatform.KapeHTTPAnchors
@_exported import struct KapePlatform.KapeHTTPClient
@_exported import struct KapePlatform.KapeHTTPError
@_exported import struct KapePlatform.KapeHTTPHeaders
@_exported import struct KapePlatform.KapeHTTPReply
@_exported import struct KapePlatform.KapeHTTPSockets
@_exported import struct KapePlatform.KapeLogger
@_exported import enum KapePlatform.KapeProductType
@_exported import struct KapePlatform.KapeSDKSettings
@_exported import enum KapePlatform.KapeSDKSettingsError
@_exported import class KapePlatform.KapeSdkHandle
@_exported import struct KapePlatform.KapeSubscription
@_exported import enum KapePlatform.KapeSubscriptionError
@_exported import struct KapePlatform.MixpanelConfiguration
@_exported import class KapePlatform.SdkConfiguration
@_exported import class KapePlatform.SdkManager
@_exported import enum KapePlatform.SessionStorageError
@_exported import protocol KapePlatform.StorageCallbackProtocol
@_exported import protocol KapePlatform.TrackingProtocol
