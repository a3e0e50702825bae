package service_test

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
)

// All that is wrong is named at once, without the password in an address.
func TestValidate(t *testing.T) {
	config := service.Config{ServerConfig: httpapi.ServerConfig{Drain: -1, TrustedProxies: []string{"nobody"}}, DatabaseURL: "https://weir:hunter2@db"}
	config.Retention.ParkedDays = -1
	err := config.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, setting := range []string{"WEIR_DRAIN", "nobody", "WEIR_BROKERS", "WEIR_PARKED_DAYS", "WEIR_DATABASE_URL"} {
		if !strings.Contains(err.Error(), setting) {
			t.Errorf("%s is not named in %q", setting, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is shown: %q", err)
	}
}

// A start that fails closes what was opened, and that may be nothing.
func TestCloseOfWhatIsNotOpen(t *testing.T) {
	base, err := service.New("ledger", service.Config{}, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	base.Close()
}

// What can't be read of the settings is known before anything is opened.
func TestNewNeedsReadableSettings(t *testing.T) {
	var config service.Config
	config.TrustedProxies = []string{"nobody"}
	if _, err := service.New("ledger", config, testenv.Logger(t)); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("New = %v", err)
	}
}
