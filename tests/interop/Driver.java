import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.admin.ConsumeStats;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * RocketMQ's own client, driven over standard input: one JSON command a line, one JSON answer a
 * line. Received messages come between the answers as {"event": "message", ...}.
 */
public final class Driver {
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static final int IN_FLIGHT_MAX = 2000;
    private final String nameServer;
    private final Map<String, DefaultMQPushConsumer> consumers = new HashMap<>();
    private final DefaultMQProducer producer;
    private DefaultMQAdminExt admin;

    private Driver(String nameServer) throws Exception {
        this.nameServer = nameServer;
        producer = new DefaultMQProducer("driver");
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout(10_000);
        producer.setMaxMessageSize(4 << 20);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setRetryTimesWhenSendAsyncFailed(0);
        producer.start();
    }

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JSONObject command = JSON.parseObject(line);
            JSONObject answer = new JSONObject();
            try {
                answer.put("answer", driver.carryOut(command));
            } catch (Exception failure) {
                answer.put("failed", String.valueOf(failure));
            }
            say(answer);
        }
        driver.close();
        System.exit(0);
    }

    private static synchronized void say(Object value) {
        OUT.println(JSON.toJSONString(value));
        OUT.flush();
    }

    private Object carryOut(JSONObject command) throws Exception {
        switch (command.getString("do")) {
            case "topic":
                return makeTopic(command);
            case "send":
                return send(command.getJSONArray("messages"));
            case "subscribe":
                return subscribe(command);
            case "unsubscribe":
                return unsubscribe(command.getString("group"));
            case "offsets":
                return offsets(command.getString("group"), command.getString("topic"));
            case "load":
                return load(command);
            default:
                throw new IllegalArgumentException(command.getString("do"));
        }
    }

    private void close() {
        for (String group : new ArrayList<>(consumers.keySet())) {
            unsubscribe(group);
        }
        producer.shutdown();
        if (admin != null) {
            admin.shutdown();
        }
    }

    private DefaultMQAdminExt admin() throws Exception {
        if (admin == null) {
            admin = new DefaultMQAdminExt(10_000);
            admin.setNamesrvAddr(nameServer);
            admin.setInstanceName("driver-admin");
            admin.start();
        }
        return admin;
    }

    private Object makeTopic(JSONObject command) throws Exception {
        int queues = command.getIntValue("queues");
        TopicConfig config = new TopicConfig(command.getString("name"), queues, queues, 6);
        admin().createAndUpdateTopicConfig(command.getString("broker"), config);
        return true;
    }

    private Object offsets(String group, String topic) throws Exception {
        ConsumeStats stats = admin().examineConsumeStats(group, topic);
        JSONObject found = new JSONObject();
        for (Map.Entry<MessageQueue, OffsetWrapper> entry : stats.getOffsetTable().entrySet()) {
            JSONObject told = new JSONObject();
            told.put("group", entry.getValue().getConsumerOffset());
            told.put("end", entry.getValue().getBrokerOffset());
            MessageQueue queue = entry.getKey();
            found.put(queue.getTopic() + "/" + queue.getQueueId(), told);
        }
        return found;
    }

    // -- sending

    private Object send(JSONArray messages) throws Exception {
        JSONArray results = new JSONArray();
        for (int number = 0; number < messages.size(); number++) {
            JSONObject told = messages.getJSONObject(number);
            Message message = message(told);
            SendResult result = producer.send(message);
            JSONObject placed = new JSONObject();
            placed.put("id", result.getMsgId());
            placed.put("offset_id", result.getOffsetMsgId());
            placed.put("status", result.getSendStatus().name());
            placed.put("queue", result.getMessageQueue().getQueueId());
            placed.put("queue_offset", result.getQueueOffset());
            placed.put("recall_handle", result.getRecallHandle());
            results.add(placed);
        }
        return results;
    }

    private static Message message(JSONObject told) {
        byte[] body = Base64.getDecoder().decode(told.getString("body"));
        Message message = new Message(told.getString("topic"), told.getString("tag"), body);
        if (told.containsKey("keys")) {
            message.setKeys(told.getString("keys"));
        }
        if (told.containsKey("level")) {
            message.setDelayTimeLevel(told.getIntValue("level"));
        }
        if (told.containsKey("deliver_ms")) {
            message.setDeliverTimeMs(told.getLongValue("deliver_ms"));
        }
        if (told.containsKey("delay_ms")) {
            message.setDelayTimeMs(told.getLongValue("delay_ms"));
        }
        if (told.containsKey("delay_seconds")) {
            message.setDelayTimeSec(told.getLongValue("delay_seconds"));
        }
        JSONObject properties = told.getJSONObject("properties");
        if (properties != null) {
            for (String name : properties.keySet()) {
                message.putUserProperty(name, properties.getString(name));
            }
        }
        return message;
    }

    /** Sends as told: at a rate or as fast as it goes, synchronously or asynchronously. */
    private Object load(JSONObject told) throws Exception {
        int count = told.getIntValue("count");
        int threads = Math.max(1, told.getIntValue("threads"));
        AtomicLong accepted = new AtomicLong();
        AtomicLong refused = new AtomicLong();
        CountDownLatch answered = new CountDownLatch(count);
        List<Thread> running = new ArrayList<>();
        long began = System.nanoTime();
        for (int number = 0; number < threads; number++) {
            int own = number;
            Thread thread = new Thread(() -> sendShare(told, own, threads, accepted, refused, answered));
            thread.start();
            running.add(thread);
        }
        for (Thread thread : running) {
            thread.join();
        }
        answered.await();
        JSONObject result = new JSONObject();
        result.put("seconds", (System.nanoTime() - began) / 1e9);
        result.put("accepted", accepted.get());
        result.put("refused", refused.get());
        return result;
    }

    private void sendShare(
            JSONObject told, int own, int threads, AtomicLong accepted, AtomicLong refused, CountDownLatch answered) {
        int count = told.getIntValue("count");
        double rate = told.getDoubleValue("rate");
        boolean async = told.getBooleanValue("async");
        long from = told.getLongValue("from_ms");
        int span = Math.max(1, told.getIntValue("span_ms"));
        byte[] body = new byte[told.getIntValue("body_bytes")];
        Random chance = new Random(own);
        Semaphore inFlight = new Semaphore(IN_FLIGHT_MAX / threads);
        long began = System.nanoTime();
        for (int number = own; number < count; number += threads) {
            if (rate > 0) {
                long at = began + (long) (number / rate * 1e9);
                for (long left = at - System.nanoTime(); left > 0; left = at - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
            }
            Message message = new Message(told.getString("topic"), body);
            if (told.getIntValue("level") > 0) {
                message.setDelayTimeLevel(told.getIntValue("level"));
            } else if (from > 0) {
                message.setDeliverTimeMs(from + chance.nextInt(span));
            }
            sendOne(message, async, inFlight, accepted, refused, answered);
        }
    }

    private void sendOne(
            Message message, boolean async, Semaphore inFlight, AtomicLong accepted, AtomicLong refused,
            CountDownLatch answered) {
        try {
            if (!async) {
                boolean taken = producer.send(message).getSendStatus() == SendStatus.SEND_OK;
                (taken ? accepted : refused).incrementAndGet();
                answered.countDown();
                return;
            }
            inFlight.acquire();
            producer.send(message, new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    (result.getSendStatus() == SendStatus.SEND_OK ? accepted : refused).incrementAndGet();
                    inFlight.release();
                    answered.countDown();
                }

                @Override
                public void onException(Throwable failure) {
                    refused.incrementAndGet();
                    inFlight.release();
                    answered.countDown();
                }
            });
        } catch (Exception failure) {
            refused.incrementAndGet();
            if (async) {
                inFlight.release();
            }
            answered.countDown();
        }
    }

    // -- consuming

    private Object subscribe(JSONObject told) throws Exception {
        String group = told.getString("group");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName("driver-" + group + "-" + System.nanoTime());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        // One thread: what is told is in each queue's own order.
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.setPersistConsumerOffsetInterval(500);
        JSONArray topics = told.getJSONArray("topics");
        for (int number = 0; number < topics.size(); number++) {
            consumer.subscribe(topics.getString(number), told.getString("tags"));
        }
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                say(event(group, message));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        consumers.put(group, consumer);
        return true;
    }

    private Object unsubscribe(String group) {
        DefaultMQPushConsumer consumer = consumers.remove(group);
        if (consumer != null) {
            consumer.shutdown();
        }
        return true;
    }

    private static JSONObject event(String group, MessageExt message) {
        JSONObject event = new JSONObject();
        event.put("event", "message");
        event.put("group", group);
        event.put("topic", message.getTopic());
        event.put("queue", message.getQueueId());
        event.put("queue_offset", message.getQueueOffset());
        event.put("id", message.getMsgId());
        event.put("tag", message.getTags());
        event.put("keys", message.getKeys());
        event.put("properties", message.getProperties());
        event.put("body", Base64.getEncoder().encodeToString(message.getBody()));
        event.put("flag", message.getFlag());
        event.put("born_ms", message.getBornTimestamp());
        event.put("store_ms", message.getStoreTimestamp());
        event.put("reconsume_times", message.getReconsumeTimes());
        event.put("received_ms", System.currentTimeMillis());
        return event;
    }
}
