import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

/**
 * Apache Kafka's server-side assignors: a case a line on standard input, its result on standard
 * output. A case: assignor|topic=partitions;...|member,instance,topics,topic:number.number ...;...
 * Topics are small numbers. The result: member,topic:number.number ...;...
 */
public class KafkaAssignors {
    public static void main(String[] arguments) {
        Map<String, ConsumerGroupPartitionAssignor> assignors =
            Map.of("uniform", new UniformAssignor(), "range", new RangeAssignor());
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split("\\|", -1);
            System.out.println(assign(assignors.get(parts[0]), parts[1], parts[2]));
        }
    }

    static Uuid topic(String number) {
        return new Uuid(0, Long.parseLong(number));
    }

    static String assign(ConsumerGroupPartitionAssignor assignor, String topics, String members) {
        Map<Uuid, Integer> partitions = new HashMap<>();
        for (String each : topics.split(";")) {
            String[] pair = each.split("=");
            partitions.put(topic(pair[0]), Integer.parseInt(pair[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new LinkedHashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (String each : members.split(";")) {
            String[] parts = each.split(",", -1);
            Set<Uuid> subscribed = new TreeSet<>();
            for (String name : parts[2].split(" ")) {
                if (!name.isEmpty()) subscribed.add(topic(name));
            }
            subscriptions.add(subscribed);
            Map<Uuid, Set<Integer>> assigned = new TreeMap<>();
            for (String entry : parts[3].split(" ")) {
                if (entry.isEmpty()) continue;
                String[] pair = entry.split(":");
                Set<Integer> numbers = new TreeSet<>();
                for (String number : pair[1].split("\\.")) {
                    numbers.add(Integer.parseInt(number));
                    owners.computeIfAbsent(topic(pair[0]), __ -> new HashMap<>())
                        .put(Integer.parseInt(number), parts[0]);
                }
                assigned.put(topic(pair[0]), numbers);
            }
            Optional<String> instance =
                parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]);
            specs.put(parts[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, subscribed,
                new Assignment(Collections.unmodifiableMap(assigned))));
        }
        SubscriptionType type = subscriptions.size() == 1
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        GroupAssignment result = assignor.assign(
            new GroupSpecImpl(Collections.unmodifiableMap(specs), type, owners),
            new SubscribedTopicDescriber() {
                public int numPartitions(Uuid id) {
                    return partitions.getOrDefault(id, -1);
                }

                public Set<String> racksForPartition(Uuid id, int partition) {
                    return Set.of();
                }
            });
        StringJoiner rows = new StringJoiner(";");
        for (String member : specs.keySet()) {
            StringJoiner entries = new StringJoiner(" ");
            MemberAssignment found = result.members().get(member);
            if (found != null) {
                for (Map.Entry<Uuid, Set<Integer>> entry : new TreeMap<>(found.partitions()).entrySet()) {
                    StringJoiner numbers = new StringJoiner(".");
                    new TreeSet<>(entry.getValue()).forEach(number -> numbers.add("" + number));
                    entries.add(entry.getKey().getLeastSignificantBits() + ":" + numbers);
                }
            }
            rows.add(member + "," + entries);
        }
        return rows.toString();
    }
}
