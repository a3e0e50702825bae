package docker

import (
	"cmp"
	"os"
)

// PostgresImage is the image of PostgreSQL's containers.
func PostgresImage() string { return cmp.Or(os.Getenv("WEIR_TEST_POSTGRES_IMAGE"), "postgres:17") }

// RedisImage is the image of Redis's.
func RedisImage() string { return cmp.Or(os.Getenv("WEIR_TEST_REDIS_IMAGE"), "redis:7") }
