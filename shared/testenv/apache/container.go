package apache

import (
	"cmp"
	"fmt"
	"os"
)

// Image is the image of Apache Kafka's containers.
func Image() string { return cmp.Or(os.Getenv("WEIR_TEST_KAFKA_IMAGE"), "apache/kafka:"+Version) }

// ContainerSettings are the variables for a container of apache/kafka,
// or a compatible image: one node that advertises a port of this
// machine. A setting a.b.c is the variable KAFKA_A_B_C.
func ContainerSettings(port int) map[string]string {
	return map[string]string{
		"KAFKA_NODE_ID":                                  "1",
		"KAFKA_PROCESS_ROLES":                            "broker,controller",
		"KAFKA_LISTENERS":                                "PLAINTEXT://:9092,CONTROLLER://:9093",
		"KAFKA_ADVERTISED_LISTENERS":                     fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", port),
		"KAFKA_CONTROLLER_LISTENER_NAMES":                "CONTROLLER",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":           "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":                 "1@localhost:9093",
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":         "1",
		"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":             "5",
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":            "1",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":         "0",
		"KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS":             "1000",
		"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                "false",
		"JAVA_TOOL_OPTIONS":                              "-XX:TieredStopAtLevel=1", // of quickStart what images don't choose themselves
	}
}
