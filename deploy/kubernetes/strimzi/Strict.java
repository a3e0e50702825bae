import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import io.strimzi.api.kafka.model.common.UnknownPropertyPreserving;
import io.strimzi.api.kafka.model.kafka.Kafka;
import io.strimzi.api.kafka.model.nodepool.KafkaNodePool;
import io.strimzi.api.kafka.model.user.KafkaUser;
import java.io.File;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** Decodes each file by the type that is named before it, and fails where a field or a value is unknown: Strimzi would pass over it. */
class Strict {
    static final Map<String, Class<?>> KINDS = Map.of("Kafka", Kafka.class, "KafkaNodePool", KafkaNodePool.class, "KafkaUser", KafkaUser.class);

    public static void main(String[] args) throws Exception {
        var mapper = new ObjectMapper(new YAMLFactory());
        for (int i = 0; i < args.length; i += 2) {
            var kind = KINDS.get(args[i]);
            if (kind == null) {
                throw new IllegalArgumentException("there is no kind " + args[i]);
            }
            var given = mapper.readTree(new File(args[i + 1]));
            var decoded = mapper.treeToValue(given, kind);
            check(args[i], decoded);
            compare(args[i] + ".spec", given.get("spec"), mapper.valueToTree(decoded).get("spec"));
            checkVersion(given.path("apiVersion").asText(), (List<?>) kind.getField("VERSIONS").get(null));
        }
    }

    static void checkVersion(String given, List<?> known) {
        if (!known.contains(given.replace("kafka.strimzi.io/", ""))) {
            throw new IllegalArgumentException("there is no version " + given + ", but " + known);
        }
    }

    static void check(String path, Object found) throws Exception {
        if (found instanceof Collection<?> all) {
            for (var one : all) {
                check(path, one);
            }
            return;
        }
        if (found == null || !found.getClass().getName().startsWith("io.strimzi.")) {
            return;
        }
        if (found instanceof UnknownPropertyPreserving known && known.getAdditionalProperties() != null && !known.getAdditionalProperties().isEmpty()) {
            throw new IllegalArgumentException(path + " has no field " + known.getAdditionalProperties().keySet());
        }
        for (Method method : found.getClass().getMethods()) {
            if (method.getName().startsWith("get") && method.getParameterCount() == 0 && !found.getClass().isEnum()) {
                check(path + "." + method.getName().substring("get".length()), method.invoke(found));
            }
        }
    }

    /** Fails where a value is not kept. */
    static void compare(String path, JsonNode given, JsonNode kept) {
        if (kept == null || given.isValueNode() && !given.asText().equals(kept.asText())) {
            throw new IllegalArgumentException(path + " can't be " + given);
        }
        for (var field : given.properties()) {
            compare(path + "." + field.getKey(), field.getValue(), kept.get(field.getKey()));
        }
        for (int i = 0; given.isArray() && i < given.size(); i++) {
            compare(path + "[" + i + "]", given.get(i), kept.get(i));
        }
    }
}
