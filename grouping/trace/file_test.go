package trace

import "testing"

// What is no hash stays: it distinguishes scripts.
func TestScriptNames(t *testing.T) {
	for _, stem := range []string{
		"checkout", "dashboard", "index-settings", "app-sidebar", "shop_wishlist", "cartPage2", "product-detail", "account.profile",
		"order-history", "main", "nav-menu", "page-12", "warehouse", "index-shipping", "userProfile", "ProductPage", "worker",
	} {
		if got := withoutBuildHash(stem); got != stem {
			t.Errorf("%s becomes %s", stem, got)
		}
	}
}
