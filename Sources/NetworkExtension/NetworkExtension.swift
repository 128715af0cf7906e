// Files written for the platform's module use Data, DispatchQueue and the like without importing anything else.
@_exported import Dispatch
@_exported import Foundation
