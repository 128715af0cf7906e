extension BackendSettings {
  /// What a first start writes where no settings are given: something to try, and to change.
  package static let defaultText = """
    {
      "listen": "127.0.0.1:8480",
      "tenant": "kape",
      "clients": [
        {
          "id": "kape",
          "redirect_uris": ["http://127.0.0.1/callback", "http://[::1]/callback"]
        }
      ],
      "guests": {"allowed": true, "tier": "guest", "entitlements": ["kape.vpn"]},
      "users": [
        {
          "email": "free@example.com",
          "name": "Free User",
          "subscriptions": [{"tier": "free", "source": "web", "entitlements": ["kape.vpn"]}]
        },
        {
          "email": "paying@example.com",
          "name": "Paying User",
          "subscriptions": [
            {
              "tier": "premium", "source": "web", "term_ends_in": "30 d", "next_billing_in": "30 d",
              "billing_period": {"unit": "month", "count": 1}, "entitlements": ["kape.vpn", "kape.dedicated_ip"]
            }
          ]
        },
        {
          "email": "several@example.com",
          "name": "Several Subscriptions",
          "subscriptions": [
            {
              "tier": "premium", "source": "app_store", "term_ends_in": "7 d", "next_billing_in": "7 d",
              "billing_period": {"unit": "week", "count": 1}, "entitlements": ["kape.vpn"]
            },
            {
              "tier": "business", "source": "partner", "term_ends_in": "365 d", "is_business": true,
              "billing_period": {"unit": "year", "count": 1}, "entitlements": ["kape.vpn", "kape.dedicated_ip"]
            },
            {
              "status": "grace_period", "tier": "premium", "source": "web", "term_ends_in": "-1 d",
              "last_auto_bill_payment_failed": true, "billing_period": {"unit": "month", "count": 6},
              "entitlements": ["kape.vpn"]
            },
            {"tier": "storage", "source": "web", "entitlements": ["kape.storage"]}
          ]
        },
        {
          "email": "returning@example.com",
          "name": "Returning User",
          "subscriptions": [
            {
              "status": "expired", "tier": "premium", "source": "web", "term_ends_in": "-400 d",
              "cancelled_in": "-420 d", "billing_period": {"unit": "year", "count": 1}, "entitlements": ["kape.vpn"]
            },
            {
              "status": "suspended", "tier": "premium", "source": "app_store", "term_ends_in": "20 d",
              "billing_period": {"unit": "month", "count": 1}, "entitlements": ["kape.vpn"]
            },
            {
              "status": "cancelled", "tier": "premium", "source": "web", "term_ends_in": "10 d", "cancelled_in": "-2 d",
              "billing_period": {"unit": "month", "count": 1}, "entitlements": ["kape.vpn"]
            }
          ]
        },
        {"email": "none@example.com", "name": "No Subscription", "subscriptions": []}
      ],
      "tracking": {"project_tokens": ["kape-project"]},
      "locations": [],
      "servers": [],
      "dedicated_ips": []
    }

    """
}
