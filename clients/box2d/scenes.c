/* Box2D's steps, on its own scheduler and on a job system, in turns.
 *
 *     scenes check                      each scene with 1 to 8 workers on both: SCENE POOL WORKERS HASH
 *     scenes time WORKERS BLOCKS STEPS  so many blocks of so many steps of each scene on one and then the other
 *                                       pool: POOL SCENE HASH NANOSECONDS...
 *     scenes time WORKERS BLOCKS STEPS POOL  the same on this pool, without the other one
 *
 * POOL is 0 for Box2D's own scheduler and 1 for the job system. The hash is of all transforms at the end. */

#define _POSIX_C_SOURCE 200809L

#include <box2d/box2d.h>
#include <paceline_box2d.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BODIES_MAX = 8192, SUBSTEPS = 4, CHECKED_STEPS = 120 };

/* A world with its bodies. */
typedef struct place {
    b2WorldId world;
    b2BodyId bodies[BODIES_MAX];
    int count;
} place;

static b2BodyId add(place *to, b2BodyType type, float x, float y) {
    b2BodyDef def = b2DefaultBodyDef();
    def.type = type;
    def.position.x = x;
    def.position.y = y;
    b2BodyId body = b2CreateBody(to->world, &def);
    if (type == b2_dynamicBody && to->count < BODIES_MAX)
        to->bodies[to->count++] = body;
    return body;
}

static void give_box(b2BodyId body, float half_width, float half_height) {
    b2ShapeDef def = b2DefaultShapeDef();
    b2Polygon box = b2MakeBox(half_width, half_height);
    b2CreatePolygonShape(body, &def, &box);
}

static void lay_ground(place *in, float half_width) {
    give_box(add(in, b2_staticBody, 0.0f, -1.0f), half_width, 1.0f);
}

static void stack(place *in, float x, int rows) {
    for (int row = 0; row < rows; row++)
        for (int at = 0; at < rows - row; at++)
            give_box(add(in, b2_dynamicBody, x + (at - (rows - row) * 0.5f) * 1.1f, 0.5f + row * 1.05f),
                     0.5f, 0.5f);
}

/* One heap: a single island with many contacts. */
static void build_pyramid(place *in, int size) {
    lay_ground(in, 200.0f);
    stack(in, 0.0f, size);
}

/* Many islands. */
static void build_villages(place *in, int size) {
    lay_ground(in, 1000.0f);
    for (int i = 0; i < size * 2; i++)
        stack(in, (i - size) * 9.0f, 6);
}

/* A cloth of circles that hang on each other: many joints. */
static void build_cloth(place *in, int size) {
    static b2BodyId row[256];
    b2ShapeDef def = b2DefaultShapeDef();
    b2Circle circle = {{0.0f, 0.0f}, 0.3f};
    for (int y = 0; y < size; y++) {
        for (int x = 0; x < size; x++) {
            b2BodyType type = y == 0 && x % 4 == 0 ? b2_staticBody : b2_dynamicBody;
            b2BodyId body = add(in, type, (float)x, -(float)y);
            b2CreateCircleShape(body, &def, &circle);
            b2RevoluteJointDef joint = b2DefaultRevoluteJointDef();
            if (x > 0) {
                joint.base.bodyIdA = row[x - 1];
                joint.base.bodyIdB = body;
                joint.base.localFrameA.p = (b2Vec2){0.5f, 0.0f};
                joint.base.localFrameB.p = (b2Vec2){-0.5f, 0.0f};
                b2CreateRevoluteJoint(in->world, &joint);
            }
            if (y > 0) {
                joint.base.bodyIdA = row[x];
                joint.base.bodyIdB = body;
                joint.base.localFrameA.p = (b2Vec2){0.0f, -0.5f};
                joint.base.localFrameB.p = (b2Vec2){0.0f, 0.5f};
                b2CreateRevoluteJoint(in->world, &joint);
            }
            row[x] = body;
        }
    }
}

/* Balls and pills that fall into a pit: contacts come and go. */
static void build_rain(place *in, int size) {
    b2ShapeDef def = b2DefaultShapeDef();
    b2Circle ball = {{0.0f, 0.0f}, 0.35f};
    b2Capsule pill = {{-0.3f, 0.0f}, {0.3f, 0.0f}, 0.2f};
    lay_ground(in, 40.0f);
    give_box(add(in, b2_staticBody, -20.0f, 20.0f), 1.0f, 20.0f);
    give_box(add(in, b2_staticBody, 20.0f, 20.0f), 1.0f, 20.0f);
    for (int i = 0; i < size * size; i++) {
        b2BodyId body = add(in, b2_dynamicBody, -17.5f + (i % 36) * 0.97f + (i / 36 % 2) * 0.3f,
                            1.0f + (i / 36) * 0.9f);
        if (i % 3 == 0)
            b2CreateCapsuleShape(body, &def, &pill);
        else
            b2CreateCircleShape(body, &def, &ball);
    }
}

typedef struct scene {
    const char *name;
    void (*build)(place *in, int size);
    int size, small;
} scene;

static const scene SCENES[] = {
    {"pyramid", build_pyramid, 55, 20},
    {"villages", build_villages, 40, 8},
    {"cloth", build_cloth, 40, 16},
    {"rain", build_rain, 42, 16},
};
enum { SCENE_COUNT = sizeof SCENES / sizeof SCENES[0] };

static void make(place *in, const scene *what, int size, pl_box2d *physics, int workers) {
    b2WorldDef def = b2DefaultWorldDef();
    def.workerCount = workers;
    def.enableSleep = false;
    if (physics != NULL) {
        def.enqueueTask = pl_box2d_enqueue;
        def.finishTask = pl_box2d_finish;
        def.userTaskContext = physics;
    }
    in->world = b2CreateWorld(&def);
    in->count = 0;
    what->build(in, size);
}

static uint32_t hash(const place *of) {
    uint32_t value = 5381;
    for (int i = 0; i < of->count; i++) {
        b2WorldTransform at = b2Body_GetTransform(of->bodies[i]);
        float numbers[4] = {(float)at.p.x, (float)at.p.y, at.q.c, at.q.s};
        value = b2Hash(value, (const uint8_t *)numbers, sizeof numbers);
    }
    return value;
}

static void step(const place *in) { b2World_Step(in->world, 1.0f / 60.0f, SUBSTEPS); }

static void must(pl_status status) {
    if (status != PL_OK) {
        fprintf(stderr, "%s: %s\n", pl_status_name(status), pl_last_error());
        exit(1);
    }
}

static pl_system *system_with(unsigned workers) {
    pl_system *jobs;
    pl_system_desc desc = {.size = sizeof desc, .workers = workers, .no_workers = workers == 0};
    must(pl_system_create(&desc, &jobs));
    return jobs;
}

static place places[2];

/* More workers for Box2D than the job system has are allowed: the thread that steps runs their tasks. */
static void check(void) {
    for (int at = 0; at < SCENE_COUNT; at++) {
        for (int workers = 0; workers <= 8; workers++) {
            for (int pool = 0; pool < 2; pool++) {
                pl_system *jobs = NULL;
                pl_box2d physics;
                if (pool == 1) {
                    jobs = system_with((unsigned)workers);
                    must(pl_box2d_begin(&physics, jobs));
                }
                int count = workers == 0 ? 2 : workers;
                make(&places[0], &SCENES[at], SCENES[at].small, jobs ? &physics : NULL, count);
                for (int i = 0; i < CHECKED_STEPS; i++)
                    step(&places[0]);
                printf("%s %d %d %08x\n", SCENES[at].name, pool, workers, hash(&places[0]));
                fflush(stdout);
                b2DestroyWorld(places[0].world);
                if (jobs != NULL) {
                    must(pl_box2d_end(&physics));
                    must(pl_system_destroy(jobs));
                }
            }
        }
    }
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void rest(void) {
    struct timespec time = {0, 3000000};
    nanosleep(&time, NULL);
}

/* `only` is the one pool that there is, or BOTH. */
enum { BOTH = 2 };

static int is_wanted(int pool, int only) { return only == pool || only == BOTH; }

static void measure(int workers, int blocks, int steps, int only) {
    pl_system *jobs = is_wanted(1, only) ? system_with((unsigned)workers - 1) : NULL;
    long long *times[2];
    for (int pool = 0; pool < 2; pool++)
        times[pool] = calloc((size_t)blocks * (size_t)steps, sizeof times[0][0]);
    for (int at = 0; at < SCENE_COUNT; at++) {
        pl_box2d physics;
        if (jobs != NULL)
            must(pl_box2d_begin(&physics, jobs));
        for (int pool = 0; pool < 2; pool++)
            if (is_wanted(pool, only))
                make(&places[pool], &SCENES[at], SCENES[at].size, pool == 1 ? &physics : NULL, workers);
        for (int block = 0; block < blocks; block++) {
            for (int half = 0; half < 2; half++) {
                int pool = (block + half) % 2; /* Each goes first as often as the other. */
                if (!is_wanted(pool, only))
                    continue;
                rest();
                for (int i = 0; i < steps; i++) {
                    long long begin = now();
                    step(&places[pool]);
                    times[pool][block * steps + i] = now() - begin;
                }
            }
        }
        for (int pool = 0; pool < 2; pool++) {
            if (!is_wanted(pool, only))
                continue;
            printf("%d %s %08x", pool, SCENES[at].name, hash(&places[pool]));
            for (int i = steps; i < blocks * steps; i++) /* The first block warms up. */
                printf(" %lld", times[pool][i]);
            printf("\n");
            b2DestroyWorld(places[pool].world);
        }
        if (jobs != NULL)
            must(pl_box2d_end(&physics));
    }
    if (jobs != NULL)
        must(pl_system_destroy(jobs));
    free(times[0]);
    free(times[1]);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "check") == 0) {
        check();
    } else if ((argc == 5 || argc == 6) && strcmp(argv[1], "time") == 0 && atoi(argv[2]) > 0) {
        measure(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), argc == 6 ? atoi(argv[5]) : BOTH);
    } else {
        fprintf(stderr, "usage: scenes check | scenes time WORKERS BLOCKS STEPS [POOL]\n");
        return 2;
    }
    return 0;
}
