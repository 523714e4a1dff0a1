"""User messages by subject, written by hand, to test the assignment to topics.

A block for each subject, a line for each message; the first opens it. Some subjects are close
together on purpose. `FOLLOWUPS` have no subject themselves, in four languages.
"""


def _blocks(text: str) -> list[list[str]]:
    return [block.split("\n") for block in text.strip().split("\n\n")]


SUBJECTS = _blocks("""
I'm planning a week in Lisbon in May, which neighbourhoods should I stay in?
Is Alfama too noisy at night for a hotel in Lisbon?
How do I get from Lisbon airport to the old town?
Are day trips from Lisbon to Sintra worth it?
Which tram goes past the Lisbon sights?
What is a fair price for a hotel room in central Lisbon?
Where in Lisbon can I hear fado without paying tourist prices?
Do I need a Lisboa travel card for three days in the city?
What is the weather in Lisbon like at the beginning of May?

We want to travel through Japan for two weeks in autumn, what route do you suggest?
Is the Japan Rail Pass still worth the money after the price increase?
How many days should we spend in Kyoto compared with Tokyo?
Can you recommend a ryokan with hot springs near Hakone?
Do I need cash in Japan or do cards work everywhere?
When do the maple leaves turn red around Kyoto?
What etiquette should tourists know before visiting Japanese temples?
How do I reserve seats on the Shinkansen from Tokyo to Osaka?
Which eSIM works well for travellers in Japan?

My sourdough starter is not rising any more, what went wrong?
How often should I feed a sourdough starter that lives in the fridge?
The crumb of my sourdough bread is dense and gummy.
What hydration should I use for a beginner's sourdough loaf?
Can I bake sourdough without a Dutch oven?
How long should the dough proof overnight in the fridge before baking?
My sourdough crust is too hard to cut.
Does rye flour make the starter more active?
What should I do with leftover sourdough discard?

Give me a recipe for a vegetarian lasagne for eight people.
Can I replace ricotta with cottage cheese in the lasagne?
How long does a lasagne have to bake, and at what temperature?
Do the lasagne sheets need to be boiled first?
How do I make a good béchamel for lasagne without lumps?
Can I prepare the vegetable lasagne a day ahead and freeze it?
Which vegetables go well in a meatless lasagne?
My lasagne turned out watery, why?
How much lasagne do I need per guest?

I have a Python function that raises KeyError when the dictionary is empty, how do I fix it?
What is the difference between dict.get and square brackets in Python?
How can I write a Python decorator that retries a function?
Why does my Python list change when I modify its copy?
Explain Python generators with a small code example.
How do I type hint a function in Python that returns either str or None?
My Python script is slow when it loops over a large list.
How do I read a CSV file in Python without pandas?
What does if __name__ == "__main__" do in a Python script?

My PostgreSQL query takes twelve seconds, how do I find out why?
What does a sequential scan mean in the output of EXPLAIN ANALYZE?
Should I create an index on two columns or two separate indexes in Postgres?
How do I write an SQL join that keeps the rows without a match?
What is the right way to do an upsert in PostgreSQL?
The database says deadlock detected during the transaction, what now?
How large can a Postgres table get before I should partition it?
How do I back up a PostgreSQL database every night?
When is it time to run vacuum on a Postgres table?

Docker says no space left on device when I build the image.
How do I make my Docker image smaller with a multi-stage build?
Why can't one container reach the other by name in docker compose?
How do I keep data in a Docker volume when the container is removed?
My container exits immediately after docker run.
Should I use Alpine or Debian slim for the base image?
How do I pass environment variables and secrets to a Docker container?
What is the difference between CMD and ENTRYPOINT in a Dockerfile?
How can I see the logs of a crashed container?

I accidentally committed a password to git, how do I remove it from the history?
What is the difference between git merge and git rebase?
How do I undo my last git commit but keep the changes?
Git says that I have a detached HEAD, is my work lost?
How do I resolve a merge conflict in a binary file with git?
Can I squash the last five commits before I push the branch?
How do I find the commit that introduced a bug with git bisect?
What belongs in a .gitignore file?
How do I move a commit to another git branch?

My tomato plants have yellow leaves at the bottom, what are they missing?
When should I plant tomatoes outside in a raised bed?
How often do I water tomatoes in hot weather?
Should I cut the side shoots of tomato plants?
There are brown spots on my tomatoes, is that blight?
What can I plant next to tomatoes to keep pests away?
Which fertiliser is good for tomatoes in pots on a balcony?
How do I save seeds from my best tomatoes for next year?
Why do my tomatoes crack before they are ripe?

My monstera gets brown tips on its leaves, what should I do?
Which houseplants survive in a dark hallway?
How do I get rid of fungus gnats in my indoor plants?
When should I repot my monstera?
My ficus loses its leaves since I moved it to another window.
How often should I water a snake plant in winter?
Are any of these house plants poisonous for cats?
How do I propagate a pothos cutting in water?
Do indoor plants need a humidifier in the heating season?

I want to run my first half marathon in twelve weeks, can you make a training plan?
How many kilometres a week should I run as a beginner?
My knee hurts on the outside after long runs.
What should I eat in the morning before a half marathon?
How do I find out my target pace for the race?
Are expensive running shoes worth it?
Should I do intervals or slow runs to get faster?
How long before the race do I start tapering?
What do I wear for running in the rain?

How do I learn to do a proper pull-up at the gym?
How many sets per muscle should I lift each week?
My lower back hurts when I deadlift, what is wrong with my form?
Is creatine useful for strength training?
How much protein do I need a day to build muscle?
Give me a three-day gym programme with barbell and dumbbells.
How long should I rest between heavy squat sets?
Should I train with weights when my muscles are still sore?
What weight should a beginner use on the bench press?

I have a job interview for a product manager position on Thursday, how do I prepare?
What questions should I ask the interviewer at the end?
How do I answer what my greatest weakness is in an interview?
How should I explain the gap in my CV during the interview?
When is the right moment to talk about salary with the recruiter?
What do I wear to a job interview at a startup?
Can you play the interviewer and ask me product manager questions?
Should I send a thank-you email after the interview?
The company wants a second interview with a case study, what do I expect?

Can you help me write my curriculum vitae as a nurse?
Should my CV have a photo in Germany?
How many pages may a CV have after fifteen years of work?
How do I describe my hospital experience in the CV in short bullet points?
Do I list references on my CV or only on request?
What should the summary at the top of a nurse's CV say?
Which file format is best for sending a CV by email?
Should hobbies be in a CV at all?
Please correct the cover letter that goes with my CV.

I can't decide between a fixed and a variable mortgage rate for our house.
How much deposit do I need to buy a house?
What happens with my mortgage if interest rates go up again?
Can I pay back the mortgage early without a penalty?
How do banks calculate how much mortgage I can afford?
What extra costs come with buying a house besides the purchase price?
Is a thirty-year mortgage a bad idea at the age of forty-five?
What does the bank want to see before it approves the home loan?
Should we use our savings for a larger down payment?

How should I begin to invest two hundred euros a month?
What is the difference between an ETF and an index fund?
Is an accumulating ETF better for taxes than a distributing one?
How much of my portfolio should be in bonds?
Should I sell my shares when the stock market falls?
Which broker has the lowest fees for ETF savings plans?
What does the expense ratio of a fund mean?
Is it better to invest a lump sum or to spread it over a year?
How risky is a portfolio that is all world stocks?

I have to file my income tax return this year for the first time, where do I start?
Can I deduct my home office from my taxes?
By which date must the tax return be handed in?
Which receipts does the tax office want to see?
How are freelance earnings taxed beside a salary?
I received a tax assessment that is wrong, how do I object?
Does it pay to hire a tax adviser for a simple return?
Can commuting costs be deducted from income tax?
What is the penalty for a late tax return?

My puppy bites everything in the house, how do I stop that?
When is my puppy old enough for long walks?
How do I house-train a puppy in an apartment?
The puppy cries all night in its crate.
Which vaccinations does a young dog need?
How often should I feed a four-month-old puppy?
How do I teach my dog to come when I call?
Our dog barks at every visitor.
Which chew toys are safe for a teething puppy?

My cat has stopped using the litter box, what can be the reason?
How do I introduce a second cat to the first one?
Is dry food bad for cats?
My cat scratches the sofa although it has a post.
Why does the cat meow at five in the morning?
How do I get a cat into the carrier for the vet?
Should an indoor cat be vaccinated?
The cat vomits hairballs twice a week.
How do I give a pill to a stubborn cat?

The kitchen tap drips all the time, can I repair it myself?
How do I turn off the water before I change a faucet?
The drain under the sink is clogged and smells.
Which washer fits a dripping mixer tap?
The toilet keeps running after the flush.
How much does a plumber charge for a burst pipe?
There is limescale on the shower head, how do I remove it?
The water pressure in the bathroom is very low.
How do I seal the gap around the bathtub with silicone?

I want to paint my living room walls, how do I prepare them?
How much paint do I need for sixty square metres of wall?
Which roller leaves no streaks on a smooth wall?
Do I need primer before I paint over dark red?
How do I get a clean edge between the wall and the ceiling?
Which white paint covers in a single coat?
How long must the wall paint dry before the second coat?
How do I fill holes in plaster before painting?
Can I paint over old wallpaper?

My car makes a grinding noise when I brake, is that dangerous?
How often should the engine oil in my car be changed?
The check engine light came on this morning.
What does it cost to replace the brake pads and discs?
My car does not start in the cold, is it the battery?
How deep must the tread on my tyres be?
When does the timing belt of a Volkswagen Golf have to be changed?
The garage says the clutch is worn out, is the quote fair?
Why does my car pull to the left when I drive?

I'm thinking about buying an electric car, how far do they really go in winter?
Can I charge an electric car from a normal wall socket?
How much does a wallbox cost with installation?
How long does the battery of an electric car last?
What does fast charging on the motorway cost per kilowatt hour?
Is leasing an EV cheaper than buying one?
Do electric vehicles need less maintenance than petrol cars?
Which electric family cars have a range over five hundred kilometres?
Does charging to one hundred percent harm the EV battery?

I want to learn Spanish before my move to Valencia, how should I begin?
When do I use ser and when estar in Spanish?
How long does it take to reach B1 in Spanish?
Which Spanish podcasts are good for beginners?
Explain the difference between por and para.
How do I practise speaking Spanish when I live alone?
What are the most common irregular verbs in Spanish?
When do Spanish speakers use the subjunctive?
Please correct my Spanish sentence: Yo soy cansado hoy.

Can you explain photosynthesis to my ten-year-old daughter?
Why are leaves green if plants need sunlight?
What happens in the light reactions of photosynthesis?
Where in the plant cell does photosynthesis take place?
Do plants also breathe at night?
What is chlorophyll made of?
How does a plant turn carbon dioxide into sugar?
Give me a simple experiment that shows photosynthesis to children.
What is the difference between photosynthesis and respiration in plants?

I don't understand how derivatives work in calculus, can you explain them?
How do I use the chain rule to differentiate a nested function?
What is the derivative of the sine of x squared?
Why is the derivative zero at a maximum?
How do I integrate x times e to the x by parts?
What does a limit mean in maths?
Can you give me practice problems on derivatives with solutions?
How do I find the tangent line of a function at a point?
What is the difference between a definite and an indefinite integral?

What caused the fall of the Western Roman Empire?
Who was emperor when Rome fell in 476?
How did the Roman legions change in the late empire?
Why did Constantine move the capital of the Roman Empire?
What role did the Goths play in the end of Rome?
How many people lived in the city of Rome at its height?
Was inflation a reason for the decline of ancient Rome?
Which books on the Roman Empire can you recommend?
How did Christianity become the religion of the Roman state?

Our wedding is in September, can you make a checklist for planning it?
How many guests should we invite to a small wedding?
What does a wedding photographer usually cost?
How do we tell relatives that no children are invited to the wedding?
When do the wedding invitations have to be sent?
Can you write a wedding speech for the father of the bride?
How do we seat divorced parents at the reception?
What is a good first dance song for our wedding?
Which flowers are in season for a bridal bouquet in September?

My five-year-old son does not want to go to sleep in the evening.
How much sleep does a child of five need?
How do I handle tantrums of a toddler in the supermarket?
How much screen time is fine for a child in kindergarten?
My daughter is jealous of her new baby brother.
What can I do when my child refuses to eat vegetables?
Is my son ready for school at the age of six?
How do I set limits for my kids without shouting?
Which bedtime routine works for small children?

I wake up at three every night and can't fall asleep again.
Does melatonin help against insomnia?
How late may I drink coffee if I sleep badly?
What is good sleep hygiene for shift workers?
Is it normal to need nine hours of sleep as an adult?
Do blue light filters on the phone improve sleep?
Which relaxation exercise helps me to fall asleep?
Should I get up when I lie awake in bed for an hour?
Could sleep apnoea be why I am tired all day?

The laptop I bought from you arrived with a broken screen, I want to return it.
How long does it take until I get my refund for the laptop?
Where is the return label for my order?
My order number is 20417, has the replacement been shipped?
Who pays for sending the damaged laptop back?
Can I exchange the returned computer for a larger model?
The courier did not pick up the return parcel yesterday.
Does the warranty cover the cracked display?
Please send the refund to my credit card and not as a voucher.

I need to write a quarterly report on sales for the board, what structure should it have?
How do I show that revenue fell in the northern region in one chart?
Which sales figures belong on the first page for the board?
Please write an executive summary of the third quarter's sales.
How do I explain the lower profit margin in the quarterly report?
Should the report compare sales with last year or with the budget?
How long may a board report on the quarter be?
Give me a neutral sentence about missing the sales target.
What outlook for the fourth quarter should the report give?

Our team has too many meetings, how do we cut them down?
How do I run a stand-up meeting in ten minutes?
Who should write the minutes of a team meeting?
How do I decline a meeting invitation politely?
What belongs on the agenda of a weekly team meeting?
How do we keep one colleague from talking all the time in meetings?
Are meetings on video more tiring than those in a room?
Can a retrospective meeting be done in writing?
Which day should be free of meetings for our team?

I'm writing a detective novel set in Venice and need a plot twist.
How should my detective find the murder weapon?
Can you describe the inspector at the beginning of chapter one?
The dialogue between the inspector and the widow sounds stiff, please improve it.
How many suspects should a crime novel have?
Is a first-person narrator good for a detective story?
How do I hide the clue so that readers do not notice it?
What is a good title for my Venetian murder mystery?
When should the second murder happen in the novel?

Which acoustic guitar is good for a beginner under three hundred euros?
How do I change from a G chord to a C chord faster on the guitar?
My fingertips hurt from the guitar strings.
How often do guitar strings have to be replaced?
Which easy songs can I play with three chords?
How do I tune a guitar by ear?
Should I learn fingerpicking or strumming first?
What is a barre chord, and how do I play F on the guitar?
How long should I practise guitar each day?

My home Wi-Fi is slow in the bedroom, what can I do?
Is a mesh system better than a repeater for Wi-Fi?
Which channel should my router use on 5 GHz?
How do I change the password of my wireless network?
My laptop loses the Wi-Fi connection every hour.
Where is the best place for a router in a two-storey house?
Does Wi-Fi 6 make sense for an old phone?
How can I see who is using my wireless network?
Why is internet over the LAN cable faster than over Wi-Fi?

I want to take better photos with my camera, where should I start?
What do aperture and shutter speed do in photography?
Which lens is best for portraits on a full-frame camera?
How do I photograph the night sky without blurred stars?
Why are my indoor pictures so grainy at high ISO?
Should I shoot in RAW or JPEG?
How do I use the rule of thirds in landscape photography?
Which tripod is light enough for hiking with a camera?
How do I edit the white balance of my photos in Lightroom?
""")

FOLLOWUPS = """
and what about the price?
why?
Why not?
ok thanks
Thank you!
do it
Do it again, please.
yes
No, not that one.
go on
Continue.
How much is it?
What does it cost?
How long does it take?
and how long?
What about the second one?
Can you explain that again?
Could you make it shorter?
Make it a bit longer.
What do you mean?
Are you sure?
Really?
Tell me more.
more details please
And then?
Who is he?
When was she born?
Is that safe?
What else?
Anything else?
Sounds good.
great, let's do that
And for two people?
Is there a cheaper one?
Can I do it myself?
Which one is better?
Why is that?
Hmm, I don't think so.
Give me an example.
In a table, please.
what if it doesn't work?
That didn't work.
und wie lange?
Warum?
Und was kostet das?
Mach das bitte.
Danke!
ja, bitte
Geht das auch kürzer?
Was meinst du damit?
Und dann?
et le prix ?
Pourquoi ?
Merci beaucoup
Combien ça coûte ?
oui, vas-y
Et après ?
y el precio?
¿Por qué?
gracias
¿Cuánto cuesta?
sí, hazlo
¿Y después?
""".strip().split("\n")

# Written after the word lists and not used to improve them, except for one word ("es").
UNSEEN_FOLLOWUPS = """
is it expensive?
how so?
can you do that for me?
what are the downsides?
and in winter?
how does that work?
which one would you pick?
shorter please
say that in simpler words
what did you just say?
I didn't get that
are there any alternatives?
how many of them?
and the other one?
where can I buy it?
does it hurt?
what happens next?
never mind
nope, try again
could you be more specific?
who told you that?
how reliable is this?
is there a free version?
why would I do that?
what's the catch?
but is it legal?
ok and how do I start?
lol
that's wrong
can you check again?
Wie teuer ist das?
Und wo finde ich das?
Kannst du das genauer erklären?
Nein, das andere.
Gibt es Alternativen?
C'est cher ?
Tu peux répéter ?
Et pour les enfants ?
¿Es seguro?
¿Y cuánto tarda?
""".strip().split("\n")

UNSEEN_SUBJECTS = """
weather in Oslo tomorrow
best pizza in Naples
translate good morning to Polish
capital of Australia
write a limerick about goats
my printer is offline
explain recursion
convert 5 miles to km
book a dentist appointment
is aspirin safe for dogs?
compare Rust and Go
what is a black hole?
how do vaccines work?
gift ideas for my mother
is the museum open on Monday?
who won the 2014 World Cup?
remind me to call Anna
fix my resume
what does HTTP 404 mean?
how old is the universe?
cancel my subscription
I lost my passport
summarize this article about bees
what time is it in Tokyo?
should I buy a bike?
it is my birthday on Friday
recommend a book
how do I tie a tie?
that movie Inception, who directed it?
so what is inflation?
Wie spät ist es in Tokio?
Schreib ein Gedicht über Herbst
Was ist ein Schwarzes Loch?
Wo liegt Ulan-Bator?
Quelle est la capitale du Pérou ?
Traduis bonjour en polonais
Il pleut à Lyon ?
¿Dónde está mi pedido?
Recomienda un libro
¿Qué es la inflación?
""".strip().split("\n")
