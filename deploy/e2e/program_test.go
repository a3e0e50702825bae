package e2e

import (
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/port"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", free)
}

// backends returns testenv's backends, as variables of a process.
func backends(t *testing.T) map[string]string {
	t.Helper()
	brokers := ""
	for _, address := range kafkatest.Brokers(t) {
		brokers += "," + address
	}
	return map[string]string{
		"WEIR_DATABASE_URL": postgrestest.URL(t), "WEIR_BROKERS": brokers[1:],
		"WEIR_TIER_BOOTSTRAPPER_BYTES": fmt.Sprint(quotaBytes),
	}
}
