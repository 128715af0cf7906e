// The declarations of signing in, each by its name: nothing else of ours comes along.

@_exported import Foundation

@_exported import class KapePlatform.KapeAuthClient
@_exported import enum KapePlatform.KapeAuthError
@_exported import protocol KapePlatform.KapeAuthPresenter
@_exported import enum KapePlatform.KapeAuthState
@_exported import struct KapePlatform.KapeAuthenticationSession
@_exported import struct KapePlatform.XDGOpenPresenter
