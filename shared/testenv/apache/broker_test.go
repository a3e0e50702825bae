package apache

import (
	"strings"
	"testing"
)

// A node is alone: no setting may make it wait for a second one.
func TestPropertiesAreOfASingleNode(t *testing.T) {
	got := node{id: 1, addr: "127.0.0.1:9092", controller: "127.0.0.1:9093", voters: "1@127.0.0.1:9093", copies: 1, dir: "/data"}.properties()
	for _, line := range []string{
		"listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
		"controller.quorum.voters=1@127.0.0.1:9093",
		"offsets.topic.replication.factor=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("missing %q in\n%s", line, got)
		}
	}
}

// No id looks like an option of Kafka's tool, as one of 64 random ones would.
func TestClusterIDIsNoOption(t *testing.T) {
	for range 1000 {
		if id := clusterID(); strings.HasPrefix(id, "-") || len(id) != 22 {
			t.Fatalf("%q is an id", id)
		}
	}
}
